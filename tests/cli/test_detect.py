"""`sonde detect`: finds slow members in recordings and in running jobs."""

import json
import os
import random
import sys

from place import Place, main, until

START = 1795173000
LIBRARY, EMITTER = os.environ["SONDE_LIBRARY"], os.environ["FORMAT_EMITTER"]


def values(members, rounds, slow=None, factor=1.5, onset=20, noise=0.03, base=1.0):
    """Makes OpenTSDB lines with a value for each member and round, 10 s apart."""
    rng = random.Random(1)
    for r in range(rounds):
        for m in range(members):
            value = base * (1 + rng.gauss(0, noise)) * (factor if m == slow and r >= onset else 1)
            yield f"put step_seconds {START + 10 * r} {value!r} host=n{m // 2} gpu={m}"


class Detect(Place):
    def record(self, lines):
        file, record = self.root / "lines", self.root / f"recording-{len(list(self.root.glob('recording-*')))}"
        file.write_text("".join(line + "\n" for line in lines))
        result = self.sonde("run", "-q", "-l", 1, "--record", record, "--", "sh", "-c", f"sonde put < {file}")
        self.assertEqual(result.returncode, 0, result.stderr)
        return record

    def members(self, *arguments, code=None):
        result = self.sonde("detect", "--json", *arguments)
        found = json.loads(result.stdout)["members"] if result.stdout else []
        self.assertEqual(result.returncode, code if code is not None else 3 if any(m["state"] in ("slow", "silent") for m in found) else 0, result.stderr)
        return {m["member"]: m for m in found}


class Metrics(Detect):
    def test_one_gpu_of_four(self):
        record, exclude = self.record(values(4, 40, slow=2)), self.root / "exclude"
        found = self.members("--by", "host,gpu", "--exclude-file", exclude, "step_seconds", record, code=3)
        self.assertEqual({name: m["state"] for name, m in found.items()},
                         {"host=n0,gpu=0": "good", "host=n0,gpu=1": "good", "host=n1,gpu=2": "slow", "host=n1,gpu=3": "good"})
        slow = found["host=n1,gpu=2"]
        self.assertTrue(1.4 < slow["peers"] < 1.6 and 1.4 < slow["own"] < 1.7 and slow["score"] > 4, slow)
        # The member is slow from the 20th round on, and reported from the fifth slow round on: two
        # of them move the median, four must follow in a row.
        self.assertEqual((slow["since_ns"], slow["bad_rounds"]), ((START + 10 * 24) * 10**9, 16))
        self.assertEqual(exclude.read_text(), "n1\n")
        table = self.sonde("detect", "--by", "host,gpu", "step_seconds", record)
        self.assertEqual(table.returncode, 3)
        self.assertRegex(table.stdout, r"(?m)^host=n1,gpu=2  slow +1\.5\d +1\.[456]\d +\d+\.\d  2026-11-20 11:14:00 +16$")

    def test_nobody(self):
        record, exclude = self.record(values(4, 40)), self.root / "exclude"
        exclude.write_text("from before\n")
        result = self.sonde("detect", "--by", "gpu", "--exclude-file", exclude, "step_seconds", record)
        self.assertEqual((result.returncode, exclude.read_text()), (0, ""), result.stderr)
        self.assertEqual(result.stdout.count("good"), 4)

    def test_expression_says_who_the_members_are(self):
        record = self.record(values(4, 40, slow=3))
        found = self.members("none:10s-avg:step_seconds", record)
        self.assertEqual([name for name, m in found.items() if m["state"] == "slow"], ["gpu=3,host=n1"])
        found = self.members("avg:20s-avg:step_seconds{host=*}{gpu=wildcard(*)}", record)
        self.assertEqual(set(found), {"host=n0", "host=n1"})

    def test_less_is_worse(self):
        record = self.record(values(4, 40, slow=1, factor=0.6))
        self.assertEqual([m["state"] for m in self.members("--by", "gpu", "step_seconds", record).values()].count("slow"), 0)
        found = self.members("--by", "gpu", "--less-is-worse", "step_seconds", record)
        self.assertEqual([name for name, m in found.items() if m["state"] == "slow"], ["gpu=1"])

    def test_of_another_make(self):
        record = self.record(values(4, 40, slow=1, onset=0))
        self.assertEqual(self.members("--by", "gpu", "step_seconds", record)["gpu=1"]["state"], "slow")
        self.assertEqual(self.members("--by", "gpu", "--no-peers", "step_seconds", record)["gpu=1"]["state"], "good")

    def test_thresholds(self):
        record = self.record(values(4, 40, slow=1))
        self.assertEqual(self.members("--by", "gpu", "--slowdown", 2, "step_seconds", record)["gpu=1"]["state"], "good")
        self.assertEqual(self.members("--by", "gpu", "--persistence", 30, "step_seconds", record)["gpu=1"]["state"], "suspect")

    def steps(self, members, rounds, pace=lambda m: 10.0, until=None, first=0):
        """Makes lines of steps of varying length: (ms, line), a value per step. `until` ends
        members early."""
        rng = random.Random(3)
        for m in range(members):
            t = float(START)
            for r in range(rounds):
                t += pace(m) * (1 + rng.gauss(0, 0.01))
                if until and m in until and r >= until[m]:
                    break
                yield f"put step_seconds {round(t * 1000) // 10 * 10 + 1 + m} {1 + rng.gauss(0, 0.02)!r} host=n{first + m // 2} gpu={first * 2 + m}"

    def states(self, *arguments, code=None):
        found = self.members(*arguments, code=code)
        return {name: m["state"] for name, m in found.items()}, {name: m.get("evidence", "") for name, m in found.items()}

    def test_silent(self):
        record, exclude = self.record(self.steps(4, 40, until={2: 30})), self.root / "exclude"
        states, evidence = self.states("--by", "gpu", "--exclude-file", exclude, "step_seconds", record, code=3)
        self.assertEqual(states, {"gpu=0": "good", "gpu=1": "good", "gpu=2": "silent", "gpu=3": "good"})
        self.assertRegex(evidence["gpu=2"], r"^30 values, the last at .*; the members that go on have at least 40$")
        self.assertEqual(exclude.read_text(), "n1\n")
        self.assertIn(evidence["gpu=2"], self.sonde("detect", "--by", "gpu", "step_seconds", record).stdout)
        # The expression's groups do not distinguish all series.
        states, _ = self.states("avg:10s-avg:step_seconds{gpu=*}", record, code=3)
        self.assertEqual([name for name, state in states.items() if state == "silent"], ["gpu=2,host=n1"])

    def test_who_is_through_first_is_not_silent(self):
        for pace in (lambda m: 8.0 if m == 0 else 10.0, lambda m: 7.0 + m):
            record, exclude = self.record(self.steps(4, 40, pace)), self.root / "exclude"
            states, evidence = self.states("--by", "gpu", "--every", 1, "--exclude-file", exclude, "step_seconds", record, code=0)
            self.assertEqual(set(states.values()) - {"good", "ended", "suspect"}, set(), states)
            self.assertEqual(states["gpu=0"], "ended")
            self.assertRegex(evidence["gpu=0"], "^40 values, the last at ")
            self.assertEqual(exclude.read_text(), "")

    def test_samples_by_the_clock_end_with_their_program(self):
        lines = [line for line in values(4, 40) if not (line.endswith("gpu=2") and int(line.split()[2]) >= START + 300)]
        states, evidence = self.states("--by", "gpu", "step_seconds", self.record(lines), code=0)
        self.assertEqual(states["gpu=2"], "ended")
        self.assertRegex(evidence["gpu=2"], "^30 values, the last at ")

    def test_a_metric_of_the_node_does_not_end(self):
        lines = [line.replace("step_seconds", "gpu_temperature_celsius") for line in values(4, 40)
                 if not (line.endswith("gpu=2") and int(line.split()[2]) >= START + 300)]
        states, evidence = self.states("--by", "gpu", "gpu_temperature_celsius", self.record(lines), code=3)
        self.assertEqual(states["gpu=2"], "silent")
        self.assertIn("has not measured it since", evidence["gpu=2"])

    def test_a_node_is_lost(self):
        lost = self.record(self.steps(2, 40, lambda m: 7.0 + m, until={0: 20, 1: 20}))
        states, evidence = self.states("--by", "gpu", "step_seconds", lost, self.record(self.steps(4, 40, first=1)), code=3)
        self.assertEqual({name for name, state in states.items() if state == "silent"}, {"gpu=0", "gpu=1"}, states)
        self.assertIn("nothing of its node since", evidence["gpu=0"])

    def test_a_gap(self):
        lines = [line for line in self.steps(4, 40) if not ("gpu=2" in line and START + 100 <= int(line.split()[2]) // 1000 < START + 200)]
        result = self.sonde("detect", "--by", "gpu", "step_seconds", self.record(lines))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^gpu=2 +was silent ")

    def test_was_slow(self):
        slow_until, lines = 4 * 30, [list(values(4, 60, slow=2)), list(values(4, 60))]
        result = self.sonde("detect", "--by", "gpu", "step_seconds", self.record(lines[0][:slow_until] + lines[1][slow_until:]))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^gpu=2 +was slow ")

    def test_running_job(self):
        file, done = self.root / "lines", self.root / "done"
        file.write_text("".join(line + "\n" for line in values(4, 40, slow=2)))
        job = self.start("run", "-q", "-l", 1, "--", "sh", "-c", f"sonde put < {file}; touch {done}; while [ -e {done} ]; do sleep 0.01; done")
        until(done.exists, "the values are put")
        try:
            self.assertEqual(self.members("--by", "gpu", "step_seconds")["gpu=2"]["state"], "slow")
        finally:
            done.unlink()
        self.assertEqual(self.ends(job)[0], 0)


class Spans(Detect):
    def test_durations(self):
        rng, lines = random.Random(2), []
        for step in range(30):
            for rank in range(3):
                start = (START + 10 * step) * 10**9
                length = (1 + rng.gauss(0, 0.02)) * (2 if rank == 1 and step >= 15 else 1)
                lines.append(f"span {start} {start + int(length * 1e9)} step rank={rank}")
            lines.append(f"span {start} {start + 1} other rank=9")
        lines.append("begin step rank=2")  # this span never ends, so it has no duration
        file, record = self.root / "lines", self.root / "recording"
        file.write_text("\n".join(lines) + "\n")
        result = self.sonde("run", "-q", "-l", 1, "--record", record, "--", "sh", "-c", 'exec "$0" "$@" < lines', sys.executable, EMITTER, LIBRARY)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = self.members("--span", "--by", "rank", "step", record)
        self.assertEqual({name: m["state"] for name, m in found.items()}, {"rank=0": "good", "rank=1": "slow", "rank=2": "good"})
        self.assertTrue(1.9 < found["rank=1"]["peers"] < 2.1)
        self.assertEqual(self.members("--span", "nothing", record), {})
        # A member inside a span is stuck; a member that has left all its spans has ended.
        stuck = [line for line in lines[:-1] if "rank=0" not in line or int(line.split()[2]) < (START + 200) * 10**9]
        for more, state in (([], "ended"), (["begin step rank=0"], "silent")):
            record = self.root / f"recording-{state}"
            file.write_text("\n".join(stuck + more) + "\n")
            result = self.sonde("run", "-q", "-l", 1, "--record", record, "--", "sh", "-c", f"{sys.executable} {EMITTER} {LIBRARY} < {file}")
            self.assertEqual(result.returncode, 0, result.stderr)
            stopped = self.members("--span", "--by", "rank", "step", record, code=3)["rank=0"]
            self.assertEqual(stopped["state"], state)
            self.assertRegex(stopped["evidence"], "^in the span step since " if more else "^20 spans, the last at ")
        # Only the second half, in which the slow one was never faster: the comparison with its
        # peers shows it.
        self.assertEqual(self.members("--span", "--by", "rank", "--start", START + 160, "step", record)["rank=1"]["state"], "slow")
        self.assertEqual(self.members("--span", "--by", "rank", "--end", START + 140, "step", record)["rank=1"]["state"], "good")


class Mistakes(Detect):
    def test_words(self):
        record = self.record(values(2, 3))
        for words, arguments, code in (
            (("did you mean step_seconds",), ("step_secnds", record), 1),
            (("--by",), ("--by", " , ", "step_seconds", record), 2),
            (("--by", "8"), ("--by", "a,b,c,d,e,f,g,h,i", "step_seconds", record), 2),
            (("WHAT",), (), 2),
            (("--slowdown",), ("--slowdown", "0.5", "step_seconds", record), 2),
            (("no-such",), ("step_seconds", "no-such"), 1),
            (("cannot write", "/no/where"), ("--exclude-file", "/no/where", "step_seconds", record), 1),
        ):
            result = self.sonde("detect", *arguments)
            self.assertEqual(result.returncode, code, result.stderr)
            for word in words:
                self.assertIn(word, result.stderr)

    def test_too_few_values(self):
        result = self.sonde("detect", "--by", "gpu", "step_seconds", self.record(values(2, 1)))
        self.assertEqual((result.returncode, result.stdout.count("too few values")), (0, 2), result.stderr)

    def test_no_host_for_the_list(self):
        record = self.record(line.replace(" host=n0", "").replace(" host=n1", "") for line in values(4, 40, slow=2))
        result = self.sonde("detect", "--by", "gpu", "--exclude-file", self.root / "x", "sum:10s-avg:step_seconds{gpu=*}", record)
        self.assertEqual(result.returncode, 3)
        # the agent's own metric
        self.assertIn(os.uname().nodename.split(".")[0], (self.root / "x").read_text())


if __name__ == "__main__":
    main()
