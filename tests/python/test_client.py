"""sonde.AnalysisClient inside of jobs and beside them: Dragon's names and signatures first."""

import inspect
import json
import os
import sys
import textwrap

sys.path[:0] = [os.environ["PLACE"], os.environ["PACKAGE"]]
from place import Place, main, until  # noqa: E402

import sonde  # noqa: E402

PACKAGE = os.environ["PACKAGE"]


class Asking(Place):
    """Questions of this process: the environment is the place's, as long as a test runs."""

    def setUp(self):
        super().setUp()
        self.env |= {"PYTHONPATH": PACKAGE + ":" + os.environ.get("PYTHONPATH", "")}
        self.before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.env)

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.before)
        super().tearDown()

    def run_it(self, text, *options, code=0):
        """Runs the text as a job to its end; returns what it printed."""
        program = self.root / "program.py"
        program.write_text("import json, sonde, sys, time\n" + textwrap.dedent(text))
        result = self.sonde("run", "--quiet", *(options or ("-l", "1", "--no-record")), "--", sys.executable, program)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def start_job(self, *options):
        """A job that waits; its address."""
        self.start("run", "--quiet", *(options or ("-l", "1", "--no-record")), "--", "sleep", "600")
        return self.job()["url"]


class Dragon(Asking):
    def test_signatures(self):
        names = ("connect", "get_metrics", "get_data", "db_dump", "reboot")
        plain = {name: [(p.name, p.kind, p.default) for p in inspect.signature(getattr(sonde.AnalysisClient, name)).parameters.values()][1:] for name in names}
        either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        self.assertEqual(plain, {
            "connect": [("timeout", either, None)],
            "get_metrics": [],
            "get_data": [("metrics", either, inspect.Parameter.empty), ("tags", either, None), ("start_time", either, None)],
            "db_dump": [],
            "reboot": [("exclude_huids", keyword, None), ("exclude_hostnames", keyword, None)],
        })

    def test_before_connect(self):
        client = sonde.AnalysisClient()
        for call in (client.get_metrics, lambda: client.get_data("x"), client.db_dump, client.reboot):
            with self.assertRaisesRegex(RuntimeError, "connect"):
                call()
        with self.assertRaisesRegex(RuntimeError, "no job runs here"):
            client.connect()
        with self.assertRaisesRegex(RuntimeError, "no job runs here"):
            client.connect(timeout=0.2)
        with self.assertRaisesRegex(RuntimeError, "refused|connect"):
            sonde.AnalysisClient("http://127.0.0.1:1").connect()

    def test_inside_of_a_job(self):
        out = json.loads(self.run_it("""
            m = sonde.gauge("loss", tags={"rank": 3})
            now = time.time_ns()
            for i in range(4): m.emit(i, now // 10**9 * 10**9 + i * 4 * 10**8)     # 0, 0.4, 0.8, 1.2 s
            m.emit(9, now - 400 * 10**9)
            sonde.emit("other", 1)
            client = sonde.AnalysisClient()
            client.connect(timeout=30)
            while not {"loss", "other"} <= client.get_metrics(): time.sleep(0.01)
            while len(client.get_data("loss", start_time=now / 1e9 - 500)[0]["dps"]) < 3: time.sleep(0.01)
            print(json.dumps([now // 10**9, client.get_data("loss"), client.get_data(["other", "no_such", "loss"]), client.get_data("loss", {"rank": 3}),
                              client.get_data("loss", {"rank": "4"}), client.get_data([]), client.get_data("loss", start_time=now / 1e9 - 500)]))
        """))
        second, [loss], several, [tagged], none, nothing, [longer] = out
        self.assertEqual((loss["metric"], loss["aggregateTags"], loss["tags"]["rank"]), ("loss", [], "3"))
        self.assertIn("host", loss["tags"])
        self.assertEqual(loss["dps"], {str(second): 2, str(second + 1): 3})
        self.assertEqual(longer["dps"], loss["dps"] | {str(second - 400): 9})
        self.assertEqual(([s["metric"] for s in several], tagged, none, nothing), (["other", "loss"], loss, [], []))

    def test_wrong_metrics(self):
        self.start_job()
        client = sonde.AnalysisClient()
        client.connect(timeout=30)
        for wrong in (3, None, ("loss",), {"loss"}):
            with self.assertRaises(AttributeError):
                client.get_data(wrong)

    def test_reboot(self):
        url = self.start_job()
        with sonde.AnalysisClient(url) as client:
            with self.assertRaisesRegex(RuntimeError, "cannot be started anew"):
                client.reboot(exclude_hostnames=["n2"])
            with self.assertRaisesRegex(RuntimeError, "h_uids are not known"):
                client.reboot(exclude_huids=["17"])

    def test_reboot_of_a_resilient_job(self):
        out = self.run_it("""
            import os
            if os.environ["SONDE_RESTART"] == "0":
                with sonde.AnalysisClient() as client:
                    client.reboot(exclude_hostnames="no-such-host")
                time.sleep(600)
            print("again")
        """, "-l", "1", "--no-record", "--resilient")
        self.assertEqual(out, "again\n")

    def test_it_waits_for_a_job(self):
        client = sonde.AnalysisClient()
        self.start("run", "--quiet", "-l", "1", "--no-record", "--", "sleep", "600")
        client.connect(timeout=60)
        until(lambda: isinstance(client.get_metrics(), set), "an answer")
        client.close()
        with self.assertRaises(RuntimeError):
            client.get_metrics()


if __name__ == "__main__":
    main()
