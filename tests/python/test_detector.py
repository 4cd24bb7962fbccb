"""Detectors: find slow members from the points of a metric, and restart the job without them."""

import inspect
import os
import sys
import unittest
import unittest.mock

from program import PACKAGE, Program, main

sys.path.insert(0, PACKAGE)
import sonde  # noqa: E402
import sonde.analysis  # noqa: E402
import sonde.slow_gpu  # noqa: E402

PROBE, CLOCK, BUSY = "slow-gpu", "gpu_sm_clock_hertz", "gpu_utilization_percent"


def series(metric, host, points, gpu="0"):
    """Makes a series in the form of AnalysisClient.get_data()."""
    return {"metric": metric, "tags": {"host": host, "gpu": gpu}, "aggregateTags": [], "dps": {str(second): value for second, value in points}}


class Slow(unittest.TestCase):
    """SlowGPUDetector.analyze_data with data like get_data()'s; one probe of each GPU every 3 s."""

    HOSTS = ("n1", "n2", "n3", "n4")
    BEGIN = 1_700_000_001

    def setUp(self):
        self.before = os.environ.get("SONDE_NODELIST")
        os.environ["SONDE_NODELIST"] = ",".join(self.HOSTS)
        self.detector = sonde.SlowGPUDetector()

    def tearDown(self):
        del os.environ["SONDE_NODELIST"]
        if self.before is not None:
            os.environ["SONDE_NODELIST"] = self.before

    def play(self, rounds, seconds_of, first=0, metric=PROBE):
        """Passes rounds one after the other; returns the number of the first round that requests a
        restart, and the excluded hosts."""
        for r in range(first, first + rounds):
            data = [series(metric, host, [(self.BEGIN + 3 * r, seconds_of(host, r))]) for host in self.HOSTS if seconds_of(host, r) is not None]
            restart, nodes = self.detector.analyze_data(data, None)
            if restart:
                return r + 1 - first, nodes
        return None, nodes

    @staticmethod
    def even(host, r):
        return 0.01 * (1 + 0.01 * ((r * 7 + int(host[1])) % 4))

    def test_half_as_slow_again_is_left_out_within_six_probes(self):
        self.assertEqual(self.play(20, self.even), (None, []))
        probes, nodes = self.play(20, lambda host, r: self.even(host, r) * (1.5 if host == "n3" else 1), first=20)
        self.assertEqual(nodes, ["n3"])
        self.assertLessEqual(probes, 6)

    def test_slow_from_the_beginning(self):
        probes, nodes = self.play(20, lambda host, r: self.even(host, r) * (3 if host == "n2" else 1))
        self.assertEqual((probes, nodes), (5, ["n2"]))

    def test_how_many_probes_it_took_is_said(self):
        """The message says how many probes were received, without duplicates: an answer overlaps
        with the previous one."""
        with self.assertLogs("sonde.slow_gpu", "WARNING") as said:
            for r in range(5):
                for _ in range(2):
                    self.detector.analyze_data([series(PROBE, host, [(self.BEGIN + 3 * i, 0.03 if host == "n3" else 0.01) for i in range(r + 1)]) for host in self.HOSTS], None)
        self.assertIn("GPU n3/0 is slow: 3.00 times as long as the others, in 4 rounds running, found with probe 5", said.output[0])

    def test_the_primary_node_is_named_and_stays(self):
        with self.assertLogs("sonde.slow_gpu", "WARNING") as said:
            self.assertEqual(self.play(20, lambda host, r: self.even(host, r) * (3 if host == "n1" else 1)), (None, ["n1"]))
        self.assertEqual(len(said.output), 1)
        self.assertIn("GPU n1/0 is slow: 3.03 times as long as the others", said.output[0])

    def test_points_count_once_and_what_is_old_is_not_asked_for(self):
        """The answers overlap: only new points form rounds. Six answers with the same two rounds
        are not six rounds."""
        data = [series(PROBE, host, [(self.BEGIN + 3 * r, 0.01 if host != "n2" else 0.03) for r in range(2)]) for host in self.HOSTS]
        for _ in range(10):
            self.assertEqual(self.detector.analyze_data(data, None), (False, []))
        self.play(10, self.even, first=2)
        self.assertGreaterEqual(self.detector.start_time, self.BEGIN + 3 * 11 - 3)

    def test_one_that_says_nothing_holds_up_nobody(self):
        """n4's node is lost: rounds are judged two rounds late, but n2 is found."""
        self.play(10, self.even)
        probes, nodes = self.play(20, lambda host, r: None if host == "n4" else self.even(host, r) * (2 if host == "n2" else 1), first=10)
        self.assertEqual(nodes, ["n2"])
        self.assertLessEqual(probes, 8)

    def test_points_that_come_after_their_round_count(self):
        """n3 is so slow that its node answers only every third time, for rounds that were judged
        without it. None of its probes is lost."""
        self.play(10, self.even)
        with self.assertLogs("sonde.slow_gpu", "WARNING") as said:
            for r in range(10, 30):
                answer = [host for host in self.HOSTS if host != "n3" or r % 3 == 0]
                data = [series(PROBE, host, [(self.BEGIN + 3 * i, 0.03 if host == "n3" and i >= 10 else 0.01) for i in range(r + 1) if self.BEGIN + 3 * i >= self.detector.start_time])
                        for host in answer]
                restart, nodes = self.detector.analyze_data(data, None)
                if restart:
                    break
        self.assertEqual((restart, nodes), (True, ["n3"]))
        self.assertIn("found with probe 15", said.output[0])

    def test_those_that_come_late_together_are_judged_one_by_one(self):
        """n3 is silent for ten rounds, then sends all their values at once. Six of them are slow,
        and no round is judged before the others have sent theirs."""
        self.play(10, self.even)
        for r in range(10, 20):
            self.detector.analyze_data([series(PROBE, host, [(self.BEGIN + 3 * r, 0.01)]) for host in self.HOSTS if host != "n3"], None)
        late = [series(PROBE, "n3", [(self.BEGIN + 3 * i, 0.03) for i in range(10, 20)])]
        self.assertEqual(self.detector.analyze_data(late, None), (False, []))
        for r in range(20, 26):
            data = [series(PROBE, host, [(self.BEGIN + 3 * r, 0.03 if host == "n3" else 0.01)]) for host in self.HOSTS]
            restart, nodes = self.detector.analyze_data(data, None)
        self.assertEqual((restart, nodes), (True, ["n3"]))

    def test_points_that_come_one_by_one_are_judged_together(self):
        """A round waits for members that had a value before."""
        self.play(10, self.even)
        for r in range(10, 16):
            for host in self.HOSTS:
                restart, nodes = self.detector.analyze_data([series(PROBE, host, [(self.BEGIN + 3 * r, 0.03 if host == "n3" else 0.01)])], None)
        self.assertEqual((restart, nodes), (True, ["n3"]))

    def test_one_that_fills_up_is_compared_by_its_clock_from_then_on(self):
        self.play(10, self.even)
        for r in range(10, 20):
            at = self.BEGIN + 3 * r
            data = [series(PROBE, host, [(at, 0.01)]) for host in self.HOSTS if host != "n2"]
            data += [series(m, host, [(at, v)]) for host in self.HOSTS for m, v in ((BUSY, 90), (CLOCK, 5e8 if host == "n2" else 1.7e9))]
            restart, nodes = self.detector.analyze_data(data, None)
        self.assertEqual((restart, nodes), (True, ["n2"]))

    def test_full_gpus_are_compared_by_their_clocks_while_they_are_busy(self):
        def clocks(r):
            at = self.BEGIN + 3 * r
            found = []
            for host in self.HOSTS:
                busy = 100 if host != "n4" else 3  # n4 is idle, with a low clock
                found += [series(BUSY, host, [(at, busy)]), series(CLOCK, host, [(at, {"n2": 9e8, "n4": 3e8}.get(host, 1.7e9))])]
            return found

        for r in range(6):
            restart, nodes = self.detector.analyze_data(clocks(r), None)
        self.assertEqual((restart, nodes), (True, ["n2"]))

    def test_who_is_probed_is_not_judged_by_the_clock(self):
        for r in range(20):
            at = self.BEGIN + 3 * r
            data = [series(m, host, [(at, v)]) for host in self.HOSTS for m, v in ((PROBE, 0.01), (BUSY, 90), (CLOCK, 5e8 if host == "n2" else 1.7e9))]
            self.assertEqual(self.detector.analyze_data(data, None), (False, []))

    def test_of_several_gpus_the_host_counts(self):
        for r in range(10):
            data = [series(PROBE, host, [(self.BEGIN + 3 * r, 0.03 if (host, gpu) == ("n4", "5") else 0.01)], gpu) for host in self.HOSTS for gpu in "0125"]
            restart, nodes = self.detector.analyze_data(data, None)
        self.assertEqual((restart, nodes), (True, ["n4"]))

    def test_options_of_the_judge(self):
        self.detector = sonde.SlowGPUDetector(analysis_args={"slowdown": 4})
        self.assertEqual(self.play(20, lambda host, r: self.even(host, r) * (3 if host == "n2" else 1)), (None, []))


class Probing(unittest.TestCase):
    """probe(): the result of `sonde probe` as a number."""

    def probe(self, **more):
        paths = {"PATH": os.path.dirname(os.environ["SONDE"]) + ":" + os.environ["PATH"], "LD_LIBRARY_PATH": os.path.dirname(os.environ["FAKE_CUDA"])}
        with unittest.mock.patch.dict(os.environ, paths | more):
            return sonde.slow_gpu.probe("gpu:0")

    def test_table(self):
        self.assertEqual(self.probe(FAKE_GPU_MS="3"), 0.003)
        # no free memory; exclusive access of another program
        for passive in ({"FAKE_GPU_FREE_MIB": "0"}, {"FAKE_GPU_FAILS": "cuCtxCreate_v2=46"}):
            self.assertIsNone(self.probe(**passive))
        with unittest.mock.patch.object(sonde.slow_gpu, "_PROBE_TIMEOUT_S", 0.5):
            self.assertEqual(self.probe(FAKE_GPU_HANGS="0"), 0.5)
        for broken, words in (({"FAKE_GPU_DIES": "0"}, "without a result"), ({"FAKE_GPU_FAILS": "cuCtxCreate_v2=719"}, "719")):
            with self.assertRaisesRegex(RuntimeError, words):
                self.probe(**broken)


class Signatures(unittest.TestCase):
    """Calls as in programs for the Dragon Telemetry Service."""

    TABLE = {
        "Detector.analyze_data": "(data, analysis_args)",
        "Detector.trigger_restart": "(nodes_to_remove, sacred_nodes, restartable_ddicts)",
        "CollectorDetectorGroup.__init__": "(self, metric_name='user-cg', per_gpu=False, collection_rate=3, sacred_nodes=None, "
                                           "restartable_ddicts=None, tags=None, collector_args=None, analysis_args=None)",
        "SlowGPUDetector.__init__": "(self, collection_rate=3, restartable_ddicts=None, analysis_args=None, collector_args=None)",
    }

    def test_table(self):
        for name, said in self.TABLE.items():
            bare = inspect.signature(getattr(getattr(sonde, name.split(".")[0]), name.split(".")[1]))
            bare = bare.replace(parameters=[p.replace(annotation=p.empty) for p in bare.parameters.values()], return_annotation=bare.empty)
            self.assertEqual(str(bare), said, name)
        names = list(inspect.signature(sonde.Detector.__init__).parameters)
        self.assertEqual(names, ["self", "metric_name", "collection_rate", "sacred_nodes", "restartable_ddicts", "tags", "analysis_args"])

    def test_both(self):
        self.assertTrue(issubclass(sonde.CollectorDetectorGroup, sonde.CollectorGroup) and issubclass(sonde.CollectorDetectorGroup, sonde.Detector))
        self.assertTrue(issubclass(sonde.SlowGPUDetector, sonde.CollectorDetectorGroup))
        with self.assertRaises(ValueError):
            sonde.Detector("x", collection_rate=0)
        self.assertIsInstance(inspect.getattr_static(sonde.SlowGPUDetector, "collector_test"), staticmethod)
        for name in sonde.analysis.__all__:
            self.assertIs(getattr(sonde.analysis, name), getattr(sonde, name))


class Watch(unittest.TestCase):
    def test_it_looks_half_way_between_two_measurements(self):
        """Measurements are at whole multiples of the rate. A Detector without a collector checks
        once per interval, from its start on."""
        both = sonde.CollectorDetectorGroup("x", collection_rate=3)
        for now_s, pause_s in ((300.0, 1.5), (301.4, 0.1), (301.5, 0.0), (301.6, 2.9), (302.9, 1.6)):
            with unittest.mock.patch("time.time", return_value=now_s):
                self.assertAlmostEqual(both._pause_s() % 3, pause_s, places=6)
        self.assertEqual(sonde.Detector("x", 3)._pause_s(), 3)


class Restart(unittest.TestCase):
    def test_sacred_nodes_stay(self):
        detector = sonde.Detector("x", 1, ["n1"], [], None, None)
        for nodes, without in ((["n3", "n1", "n2", "n3"], ["n2", "n3"]), (["n1"], []), ([], [])):
            with unittest.mock.patch("sonde.detector.AnalysisClient") as client, self.assertLogs("sonde.detector"):
                detector.trigger_restart(nodes, detector.sacred_nodes, detector.restartable_ddicts)
            client().reboot.assert_called_once_with(exclude_hostnames=without)

    def restart(self, nodes, ddicts=None):
        with unittest.mock.patch("sonde.detector.AnalysisClient") as client, self.assertLogs("sonde.detector") as logs:
            sonde.Detector.trigger_restart(nodes, None, ddicts)
        client().connect.assert_not_called()
        client().reboot.assert_called_once()
        return logs.output[0].partition("of the job ")[2], client().reboot.call_args.kwargs["exclude_hostnames"]

    def test_the_first_node_stays_and_is_not_named(self):
        with unittest.mock.patch.dict(os.environ, {"SONDE_NODELIST": "n1,n2"}):
            self.assertEqual(self.restart(["n1"]), ("without excluding a node", []))
            self.assertEqual(self.restart(["n2", "n1"]), ("without n2", ["n2"]))

    def test_dictionaries_of_dragon_are_destroyed(self):
        """Only those: no other object that happens to have destroy() must end."""
        ended = []

        def destroy(self, allow_restart=False):
            ended.append((type(self).__name__, allow_restart))

        theirs = type("DDict", (), {"__module__": "dragon.data.ddict.ddict", "destroy": destroy})
        other = type("Other", (), {"__module__": "dragonfly", "destroy": destroy})
        self.restart(["n2"], [theirs(), other(), {"a": 1}])
        self.assertEqual(ended, [("DDict", True)])


class InJobs(Program):
    def job(self, text, *options, level=1, env=None):
        self.write(text)
        result = self.sonde("run", "--quiet", "-l", level, "--no-record", *options, "--", sys.executable, self.program, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_a_restart_without_anybody_left_out(self):
        """The first check finds nothing, the second one raises, the third one requests a restart;
        the primary node is sacred, so the job restarts on it."""
        result = self.job("""
            import os, threading, sonde
            print("attempt", os.environ["SONDE_RESTART"], flush=True)
            class Watch(sonde.Detector):
                looks = 0
                def analyze_data(self, data, limit):
                    self.looks += 1
                    if self.looks in (2, 3):
                        raise ValueError("cannot make anything of it")
                    values = [v for series in data for v in series["dps"].values()]
                    return self.looks > 3 and bool(values) and max(values) > limit, [series["tags"]["host"] for series in data]
            if os.environ["SONDE_RESTART"] == "0":
                sonde.emit("temperature", 95)
                watch = Watch("temperature", 0.1, sacred_nodes=[os.environ["SONDE_NODELIST"]], restartable_ddicts=[], tags=["host"], analysis_args=90)
                watch.start()
                watch.start()
                threading.Event().wait()
        """, "--resilient")
        self.assertEqual(result.stdout, "attempt 0\nattempt 1\n", result.stderr)
        self.assertEqual(result.stderr.count("ValueError: cannot make anything of it; the watch goes on"), 1, result.stderr)
        self.assertIn("requesting a restart of the job", result.stderr)

    def test_a_job_that_cannot_be_started_again(self):
        """It logs this once, and the watch continues."""
        result = self.job("""
            import threading, sonde
            enough = threading.Event()
            class Watch(sonde.Detector):
                looks = 0
                def analyze_data(self, data, arguments):
                    self.looks += 1
                    if self.looks == 5:
                        enough.set()
                    return True, ["n2"]
            watch = Watch("x", 0.05, [], [], None, None)
            watch.start()
            print(enough.wait(60))
            watch.stop()
            watch.stop()
        """)
        self.assertEqual(result.stdout, "True\n")
        self.assertEqual(result.stderr.count("the watch goes on"), 1, result.stderr)

    def test_level_0(self):
        """There is no server, and nothing is started."""
        self.assertEqual(self.job("""
            import sonde
            import threading
            watch = sonde.SlowGPUDetector()
            watch.start()
            print(threading.active_count())
            watch.stop()
        """, level=0).stdout, "1\n")

    def test_cores_play_gpus(self):
        """Both cores are probed repeatedly, and neither is reported. The third device has no
        core."""
        result = self.job("""
            import time, sonde
            from sonde.slow_gpu import devices
            if __name__ == "__main__":
                print(devices())
                detector = sonde.SlowGPUDetector(collection_rate=0.2)
                detector.start()
                with sonde.AnalysisClient() as client:
                    while True:
                        found = {s["tags"]["gpu"]: s["dps"].values() for s in client.get_data("slow-gpu", ["gpu"])}
                        if min((len(found.get(gpu, ())) for gpu in "01"), default=0) > 1:
                            break
                        time.sleep(0.1)
                detector.stop()
                print(sorted(found), all(0 < seconds < 60 for values in found.values() for seconds in values))
        """, env={"SONDE_PROBE_DEVICES": "cpu:0,cpu:0,cpu:5000"})
        self.assertEqual(result.stdout, "['cpu:0', 'cpu:0', 'cpu:5000']\n['0', '1'] True\n", result.stderr)


if __name__ == "__main__":
    main()
