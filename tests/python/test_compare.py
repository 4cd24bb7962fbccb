"""`sonde compare`: runs with known spans and parameters."""

import json
import pathlib
import textwrap

from program import Program, main

STEPS = """
    import random, sonde, sys, time
    from sonde._emit import span_at
    seconds, seed, lr = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    draw = random.Random(seed)
    sonde.config(lr=lr, same=1)
    loss = sonde.gauge("loss")
    at = time.time_ns() - 600 * 10**9
    for i in range(400):
        step, load = (int(1e9 * s * draw.lognormvariate(0, 0.03)) for s in (seconds, 0.01))
        span_at("load", at, at + load, None)
        span_at("step", at + load, at + load + step, None)
        at += load + step
        loss.emit(draw.gauss(seconds, 0.003), at)
    if seed == 2:
        span_at("evaluate", at, at + 1000, None)
"""


class Compare(Program):
    def setUp(self):
        super().setUp()
        self.write(textwrap.dedent(STEPS))
        runs = {"a1": (0.1, 1, 0.1), "b1": (0.103, 2, 0.2), "a2": (0.1, 3, 0.1), "b2": (0.103, 4, 0.2), "a3": (0.1, 5, 0.1), "b3": (0.103, 6, 0.2)}
        for name, arguments in runs.items():
            done = self.sonde("run", "-q", "-l", "1", "--name", name, "--", "python3", self.program, *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def compare(self, *arguments, code=0):
        done = self.sonde("compare", "--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        found = json.loads(done.stdout)
        return found, {d["name"]: d for d in found["differences"]}

    def test_runs(self):
        for before, after in (("a1", "b1"), ("a1,a2,a3", "b1,b2,b3")):
            found, by_name = self.compare(before, after, "--metric", "loss")
            self.assertEqual((found["before"]["config.lr"], found["after"]["config.lr"]), ("0.1", "0.2"))
            step = by_name["step"]
            self.assertEqual((found["differences"][0]["name"], step["verdict"], by_name["load"]["verdict"]), ("step", "slower", "same"))
            self.assertEqual(step["count_before"], 400 * len(before.split(",")))
            self.assertTrue(0 < step["mean"]["low"] < 0.003 < step["mean"]["high"] < 0.01, step)
            self.assertFalse(by_name["evaluate"]["on_both_sides"])
            self.assertEqual((by_name["loss"]["kind"], by_name["loss"]["verdict"]), ("metric", "higher"))
        text = self.sonde("compare", "a1", "b1").stdout
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)
        for words in ("config.lr", "slower", "evaluate is on one side only", "One run a side"):
            self.assertIn(words, text)
        self.assertNotIn("config.same", text)
        self.assertEqual(self.compare("b1", "a1", "--span", "step")[1]["step"]["verdict"], "faster")
        self.assertEqual([*self.compare("a1", "a2", "--span", "step")[1]], ["step"])
        self.page()
        self.descriptions()

    def page(self):
        """The page is one file without a script or a reference; it has charts of metrics that exist
        on both sides."""
        page = self.root / "compare.html"
        done = self.sonde("compare", "a1,a2", "b1,b2", "--metric", "loss", "-o", page)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", f"sonde: wrote {page}\n"))
        text = page.read_text()
        for words in ("<td>config.lr</td><td class=\"t\">0.1</td><td class=\"t\">0.2</td>", "<b>slower</b>", "<b>higher</b>", "evaluate is on one side only", "before mean", "after mean"):
            self.assertIn(words, text)
        self.assertEqual((text.count("<svg"), text.count('class="l c0"'), text.count('class="l c1"')), (3, 3, 3))
        for words in ("<script", "http://", "https://", "url("):
            self.assertNotIn(words, text)
        # The axis of spans shows their numbers, the axis of a metric the time: 400 steps of 0.113
        # s.
        self.assertIn(">400<", text)
        self.assertIn(">00:00:45<", text)
        self.one_line(self.sonde("compare", "a1", "b1", "-o", self.root), 1, "cannot write")

    def descriptions(self):
        """For a run without run.json (a killed one, for instance), the parameters come from the
        recordings of all nodes; unreadable descriptions and lost parameters are named."""
        b1 = json.loads(self.sonde("ls", "--json", "--where", "name=b1").stdout)[0]["path"]
        folder = pathlib.Path(b1)
        found = self.compare("a1", folder)[0]
        self.assertEqual(found["after"]["config.lr"], "0.2")
        description = folder / "run.json"
        known = json.loads(description.read_text())
        known["about"]["config_lost"] = 7
        description.write_text(json.dumps(known))
        done = self.sonde("compare", "--strict", "a1", folder)
        self.assertEqual((done.returncode, done.stderr), (4, f"sonde: missing in the answer: 7 parameters of {folder}\n"))
        known["note"] = " " * (512 << 10)
        description.write_text(json.dumps(known))
        done = self.sonde("compare", "--json", "--strict", "a1", folder)
        self.assertEqual((done.returncode, done.stderr), (4, f"sonde: missing in the answer: {description} is larger than 524288 bytes\n"))
        self.assertEqual(json.loads(done.stdout)["after"], {"config.lr": "0.2", "config.same": "1"})
        description.unlink()
        self.assertEqual(self.compare("a1", folder)[0]["after"], {"config.lr": "0.2", "config.same": "1"})

    def test_conditions(self):
        for condition, code in {"step mean +2%": 3, "step mean +5%": 0, "step p50 2%": 3, "load mean +1%": 0, "step mean -1%": 0}.items():
            self.compare("a1,a2,a3", "b1,b2,b3", "--fail-if", condition, code=code)
        self.compare("b1,b2,b3", "a1,a2,a3", "--fail-if", "step mean -2%", code=3)
        for condition, words in {"step": "is not a condition", "step mean": "is not a condition", "step mean 5": "is not a condition", "step odd +5%": "is not a condition", "step mean 0%": "is not a condition"}.items():
            self.one_line(self.sonde("compare", "a1", "b1", "--fail-if", condition), 2, words)
        self.one_line(self.sonde("compare", "a1", "b1", "--fail-if", "other mean +5%"), 1, "has the name other")
        # With one run per side, a peak has no interval.
        self.assertIn("too few values, or runs", self.sonde("compare", "a1", "b1", "--fail-if", "step peak +1%").stderr)
        self.one_line(self.sonde("compare", "a1,", "b1"), 2, "name is empty")
        self.one_line(self.sonde("compare", "a1", "nowhere"), 1, "nowhere")


if __name__ == "__main__":
    main()
