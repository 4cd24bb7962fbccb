"""`sonde top` in a real terminal (tmux): live and recorded, keys, sizes, and the terminal
afterwards."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from place import SONDE, Place, main, until

@unittest.skipUnless(shutil.which("tmux"), "tmux is not there")
class Top(Place):
    def setUp(self):
        super().setUp()
        self.env = {k: v for k, v in self.env.items() if k not in ("NO_COLOR", "TMUX", "COLUMNS", "LINES")}
        self.env |= {"TERM": "xterm-256color", "PS1": "$ ", "BASH_SILENCE_DEPRECATION_WARNING": "1"}
        self.server = None

    def tearDown(self):
        if self.server:
            self.tmux("kill-server")
        super().tearDown()

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-S", self.server, "-f", "/dev/null", *map(str, arguments)], env=self.env, capture_output=True, text=True, check=False)
        return result.stdout

    def terminal(self, columns, rows):
        self.server = self.root / "tmux"
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, "bash", "--norc", "--noprofile")
        until(lambda: "$" in self.screen(), "a shell's prompt")

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, *words):
        """The screen, once all of the words (regular expressions) are on it."""
        last = ""

        def there():
            nonlocal last
            last = self.screen()
            return all(re.search(word, last, re.M) for word in words)

        try:
            until(there, words)
        except AssertionError:
            raise AssertionError(f"never showed {words}:\n{last}") from None
        return last

    def top(self, *arguments):
        self.keys(" ".join([SONDE, "top", *map(str, arguments)]), "Enter")
        self.shows(r"^q quit")

    def top_pid(self):
        return until(lambda: next((p for p, text in self.alive(f"{SONDE} top").items() if "bash" not in text and "tmux" not in text), None), "sonde top runs")

    def clean(self):
        """The shell has its screen, its cursor and its modes again."""
        until(lambda: self.tmux("display-message", "-p", "#{alternate_on} #{pane_current_command}").strip() == "0 bash", "the shell is back")
        self.keys("stty -a | tr ' ' '\\n' | grep -x -e -icanon -e -echo | wc -l | sed s/^/modes=/", "Enter")
        text = self.shows(r"^modes=\d")
        self.assertIn("modes=0", text)
        self.assertNotIn("q quit", text)  # the alternate screen is gone
        self.assertEqual(self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")
        self.keys("clear", "Enter")
        until(lambda: "modes" not in self.screen(), "a cleared screen")

    def number(self, expression, where, at):
        """The value of an expression at a time (s), as `sonde query` says it."""
        result = self.sonde("query", "--json", expression, where)
        self.assertEqual(result.returncode, 0, result.stderr)
        series = json.loads(result.stdout)
        return {s["tags"].get("host"): s["dps"].get(str(at * 1000)) for s in series}

    def recording(self):
        """Of two GPU-less minutes as imported: known values on two nodes."""
        start = 1795402800
        folder = self.root / "kept"
        for host, factor in (("n1", 1), ("n2", 2)):
            table = self.root / f"{host}.csv"
            rows = [f"{(start + i) * 10**9},{10 * factor + i % 7},{i % 50 + factor},{i * factor}" for i in range(120)]
            table.write_text("\n".join(["time,cpu_percent,memory_used_percent,own_metric", *rows]) + "\n")
            result = self.sonde("import", "--host", host, "-o", folder, table)
            self.assertEqual(result.returncode, 0, result.stderr)
        return folder, start

    # ---- recordings

    def test_numbers_are_those_of_query(self):
        folder, start = self.recording()
        result = self.sonde("top", "--once", folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(result.stdout.splitlines()), 24)
        expected = self.number("avg:1s-avg:cpu_percent{host=*}", folder, start + 119)
        for host in ("n1", "n2"):
            row = next(line for line in result.stdout.splitlines() if line.startswith(host))
            self.assertEqual(float(row.split()[1]), expected[host], row)
        # And at another time.
        result = self.sonde("top", "--once", "--at", start + 40, folder)
        expected = self.number("avg:1s-avg:cpu_percent{host=*}", folder, start + 40)
        row = next(line for line in result.stdout.splitlines() if line.startswith("n2"))
        self.assertEqual(float(row.split()[1]), expected["n2"], row)
        self.assertIn("03:00:40", result.stdout)

    def test_recorded_keys(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        self.top(folder)
        self.shows(r"^n1 +10\.0|^n1 +1\d\.\d", "recording", r"end .*03:01:59")
        self.keys("Left")
        self.shows(r"at .*03:01:58")
        self.keys("Right")
        self.shows(r"end .*03:01:59")
        self.keys("Home")
        self.shows(r"at .*03:01:00")
        self.keys("End")
        self.shows(r"end .*03:01:59")
        self.keys("/")
        self.keys("n2", "Enter")
        self.assertNotRegex(self.shows(r"filter: n2", r"NODE.* 1 ", r"^n2"), r"(?m)^n1")
        self.keys("Escape")
        self.shows("^n1", "^n2")
        self.keys("s")
        text = self.shows(r"CPU %▼")
        self.assertLess(text.index("\nn2"), text.index("\nn1"))
        self.keys("r")
        text = self.shows(r"CPU %▲")
        self.assertLess(text.index("\nn1"), text.index("\nn2"))
        self.keys("Down", "Enter")
        self.shows("> n2", "^GPU", "^METRIC", r"^own_metric +238")
        self.keys("Escape")
        self.shows("^NODE")
        self.keys("4")
        self.shows(r"^own_metric")
        self.keys("Enter")
        self.shows("> own_metric", r"^host=n1 +119 ", r"^host=n2 +238 ")
        self.keys("?")
        self.shows("the job in a terminal")
        self.tmux("resize-window", "-x", 300, "-y", 100)
        self.keys("Escape")
        until(lambda: len(self.shows("Space pause").splitlines()[0]) > 200, "300 columns")
        self.tmux("resize-window", "-x", 120, "-y", 40)
        until(lambda: self.screen().splitlines()[39].startswith("q quit"), "the foot at the end of 40 rows")
        self.keys("q")
        self.clean()

    def test_colours(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        for arguments, coloured in (([folder], True), (["--colour=never", folder], False)):
            self.top(*arguments)
            self.shows("^n1")
            self.assertEqual(bool(re.search(r"\x1b\[(?:\d+;)*3[0-7]m", self.screen("-e"))), coloured)
            self.keys("q")
            self.clean()
        self.keys("export NO_COLOR=1 LC_ALL=C", "Enter")
        self.top(folder)
        text = self.shows("^n1")
        self.assertNotRegex(self.screen("-e"), r"\x1b\[(?:\d+;)*3[0-7]m")
        self.assertTrue(text.isascii(), text)
        self.keys("q")
        self.clean()

    # ---- ends

    def test_every_end_leaves_the_terminal_clean(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        for number, key in ((signal.SIGINT, "C-c"), (signal.SIGTERM, None), (signal.SIGHUP, None), (signal.SIGQUIT, "C-\\")):
            self.top(folder)
            if key:
                self.keys(key)
            else:
                os.kill(self.top_pid(), number)
            until(lambda: not any(f"{SONDE} top" in text and "bash" not in text for text in self.alive().values()), "sonde top has ended")
            self.keys("echo code=$?", "Enter")
            self.shows(f"code={128 + number}")
            self.clean()

    def test_stopped_and_continued(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        self.top(folder)
        self.keys("C-z")
        self.shows("Stopped")
        self.clean()
        self.keys("fg", "Enter")
        self.shows("^q quit", "^n1")
        self.keys("Down", "Enter")
        self.shows("> n2")
        self.keys("q")
        self.clean()

    def test_no_terminal(self):
        folder, _ = self.recording()
        self.one_line(self.sonde("top", folder), 2, "needs a terminal", "--once")
        self.one_line(self.sonde("top", "--once", self.root / "nothing"), 1)

    # ---- a job

    def test_a_job_that_is_killed(self):
        job = self.start("run", "-q", "-l", "2", "--rate", "0.1", "--", "sh", "-c", f"sonde put own_metric 41 rank=3; echo >{self.root}/emitted; sleep 1000")
        until(lambda: pathlib.Path(self.root / "emitted").exists(), "a point")
        self.job()
        self.terminal(120, 40)
        self.top()
        host = os.uname().nodename.split(".")[0]
        self.shows("running", rf"^{re.escape(host)} +\d", "live", "1 node ", "level 2")
        self.keys("4")
        self.keys("-", "-", "-", "-")  # bars of a minute: the point stays in sight
        self.shows(r"^own_metric +41 ", "bars of 1m00s")
        job.kill()
        job.wait()
        self.shows("no answer since")
        for pid in self.alive("sleep 1000"):  # the command outlives a launcher that is killed
            os.kill(pid, signal.SIGKILL)
        self.keys("q")
        self.clean()

    # ---- query --plot

    def test_plot(self):
        folder, _ = self.recording()
        result = self.sonde("query", "--plot", "avg:1s-avg:own_metric{host=*}", folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)
        self.assertEqual(lines[0].split(), ["least", "most", "last"])
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["host=n1", "host=n2"])
        self.assertEqual([line.split()[-3:] for line in lines[1:3]], [["0", "119", "119"], ["0", "238", "238"]])
        drawn = lines[1].split()[1]
        self.assertEqual(drawn, "".join(sorted(drawn)))  # a ramp
        self.assertEqual((drawn[0], drawn[-1]), ("▁", "█"))
        self.assertIn("03:00:00", lines[3])
        self.assertTrue(self.sonde("query", "--plot", "own_metric", folder, env={"LC_ALL": "C"}).stdout.isascii())
        self.one_line(self.sonde("query", "--plot", "--json", "own_metric", folder), 2, "--plot")


if __name__ == "__main__":
    main()
