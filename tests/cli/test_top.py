"""`sonde top` in a real terminal (tmux): live and recorded, keys, sizes, and the terminal
afterwards."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from place import SONDE, Place, free_port, main, until

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
        """The screen, once it shows all of the words (regular expressions)."""
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
        """Asserts that the shell has its screen, its cursor and its modes again."""
        until(lambda: self.tmux("display-message", "-p", "#{alternate_on} #{pane_current_command}").strip() == "0 bash", "the shell is back")
        self.keys("stty -a | tr ' ' '\\n' | grep -x -e -icanon -e -echo | wc -l | sed s/^/modes=/", "Enter")
        text = self.shows(r"^modes=\d")
        self.assertIn("modes=0", text)
        self.assertNotIn("q quit", text)  # the alternate screen is closed
        self.assertEqual(self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip(), "0 1")
        self.keys("clear", "Enter")
        until(lambda: "modes" not in self.screen(), "a cleared screen")

    def number(self, expression, where, at):
        """Returns the value of an expression at a time (s), from `sonde query`."""
        result = self.sonde("query", "--json", expression, where)
        self.assertEqual(result.returncode, 0, result.stderr)
        series = json.loads(result.stdout)
        return {s["tags"].get("host"): s["dps"].get(str(at * 1000)) for s in series}

    def recording(self):
        """Imports two minutes without GPUs: known values on two nodes."""
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
        # The same at another time.
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
        self.shows("the next view")
        self.tmux("resize-window", "-x", 300, "-y", 100)
        self.keys("Escape")
        until(lambda: len(self.shows("Space pause").splitlines()[0]) > 200, "300 columns")
        self.tmux("resize-window", "-x", 120, "-y", 40)
        until(lambda: self.screen().splitlines()[39].startswith("q quit"), "the foot at the end of 40 rows")
        self.keys("q")
        self.clean()

    def test_mouse(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        self.top(folder)
        line = self.shows("^n1", "^n2").splitlines().index(next(l for l in self.screen().splitlines() if l.startswith("n2")))

        def press(button, end="M"):
            self.keys("-H", *(f"{ord(c):x}" for c in f"\033[<{button};5;{line + 1}{end}"))

        def modes():
            return self.tmux("display-message", "-p", "#{mouse_standard_flag}#{mouse_sgr_flag}").strip()

        self.assertEqual(modes(), "00")  # the terminal selects text
        press(0)
        self.keys("Enter")
        self.shows("> n1")  # a press that is not a key changes nothing
        self.keys("Escape")
        self.shows("^NODE")
        self.keys("m")
        until(lambda: modes() == "11", "mouse mode")
        press(0)
        press(0, "m")
        press(2)
        press(0)
        self.shows("> n2")
        self.keys("Escape")
        self.shows("^NODE")
        press(64)
        self.keys("Enter")
        self.shows("> n1")
        self.keys("Escape", "m")
        until(lambda: modes() == "00", "no mouse mode")
        self.keys("m")
        until(lambda: modes() == "11", "mouse mode")
        self.keys("q")
        self.clean()
        self.assertEqual(modes(), "00")

    def test_late_points(self):
        """A point that arrives after newer ones fills its gap."""
        script = f"while read line; do echo $line | sonde put; done <{self.root}/lines"
        os.mkfifo(self.root / "lines")
        job = self.start("run", "-q", "-l", "1", "--", "sh", "-c", script)
        self.job()
        with open(self.root / "lines", "w", buffering=1) as lines:
            now = int(time.time())
            print(f"put own_metric {now} 41 host=a", file=lines)
            self.terminal(120, 40)
            self.top("--show", "metrics")
            self.shows(r"^own_metric +41 ")
            self.keys("Enter")
            text = self.shows(r"^host=a.* 41 ")
            bars = len(re.findall("[▁-█]", text))
            print(f"put own_metric {now - 12} 82 host=a", file=lines)
            self.shows(rf"^host=a.* 41 .*█")
            self.assertGreater(len(re.findall("[▁-█]", self.screen())), bars)
            self.keys("q")
            self.clean()
        self.assertEqual(self.ends(job)[0], 0)

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
        self.keys("-", "-", "-", "-")  # buckets of a minute: the point stays visible
        self.shows(r"^own_metric +41 ", "bars of 1m00s")
        job.kill()
        job.wait()
        self.shows("no answer since|the job answers no more", r"^own_metric +41 ")
        for pid in self.alive("sleep 1000"):  # the command outlives a launcher that is killed
            os.kill(pid, signal.SIGKILL)
        self.keys("q")
        self.clean()

    def test_a_job_that_ends(self):
        """The display stays, and continues with the recording."""
        script = f"sonde put own_metric 41 rank=3; until [ -e {self.root}/end ]; do sleep 0.1; done; exit 3"
        job = self.start("run", "-q", "-l", "2", "--rate", "0.1", "--", "sh", "-c", script)
        self.job()
        self.terminal(120, 40)
        self.top()
        self.shows("running", r"^\S+ +\d")
        pathlib.Path(self.root / "end").touch()
        self.assertEqual(self.ends(job)[0], 3)
        text = self.shows("ended, exit code 3", "the job answers no more since .*: its recording")
        self.assertNotIn("no answer", text)
        self.keys("6")
        self.shows(r"^rank 3 .* 41")
        self.keys("q")
        self.clean()

    def test_a_server_that_comes_back(self):
        folder, _ = self.recording()
        token = self.root / "token"
        port = str(free_port())

        def serve():
            server = self.start("replay", "--port", port, "--token-file", token, folder)
            server.stderr.readline()
            return server

        server = serve()
        url = f"http://127.0.0.1:{port}/?token={token.read_text().strip()}"
        self.terminal(80, 24)
        self.top(f"'{url}'")
        self.shows("^n1 +1\\d")
        for _ in range(2):
            server.kill()
            server.wait()
            self.shows("no answer since", "^n1 +1\\d")  # the last frame stays
            server = serve()
            text = self.shows("2 nodes", "^n1 +1\\d")
            self.assertNotIn("no answer", text)
        self.keys("q")
        self.clean()

    # ---- findings and ranks

    def slow_recording(self):
        """Makes four nodes; the third one takes 1.7 times as long from the second minute on."""
        start = 1795402800
        folder = self.root / "slow"
        for number in range(4):
            table = self.root / "table.csv"
            rows = [f"{(start + i) * 10**9},{20 + number},{(1 + (i * 7 + number * 3) % 10 / 500) * (1.7 if number == 2 and i >= 60 else 1)}" for i in range(180)]
            table.write_text("\n".join(["time,cpu_percent,step_seconds", *rows]) + "\n")
            result = self.sonde("import", "--host", f"n{number}", "-o", folder, table)
            self.assertEqual(result.returncode, 0, result.stderr)
        return folder, start

    def test_findings(self):
        folder, start = self.slow_recording()
        detected = self.sonde("detect", "--json", "--every", "2", "step_seconds", folder)
        slow = [m["member"] for m in json.loads(detected.stdout)["members"] if m["state"] == "slow"]
        self.assertEqual((slow, detected.returncode), (["host=n2"], 3), detected.stdout + detected.stderr)
        server = self.start("replay", "--port", str(free_port()), folder)
        url = server.stderr.readline().split()[1]
        for where in (folder, url):
            text = self.sonde("top", "--once", where).stdout
            self.assertIn("1 slow (key 7)", text)
            self.assertEqual(re.findall(r"(?m)^(n\d+) +!", text), ["n2"])
            text = self.sonde("top", "--once", "--show", "findings", where).stdout
            self.assertRegex(text, r"(?m)^slow +n2 takes 1\.\d+ times the others' step_seconds since 03:01:0\d$")
            # Before a member is slow, none is reported.
            text = self.sonde("top", "--once", "--show", "findings", "--at", start + 55, where).stdout
            self.assertIn("nothing unusual", text)
            self.assertNotIn("slow (key", text)
        self.terminal(80, 24)
        self.top(folder)
        self.keys("7", "Enter")
        self.shows("> step_seconds", r"^host=n2 +1\.7")
        self.keys("Escape")
        self.shows("FINDINGS, THE WORST FIRST")
        self.keys("/")
        self.keys("n1", "Enter")
        self.shows("no finding has this")
        self.keys("q")
        self.clean()

    def test_docs_name_every_key(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        self.top(folder)
        self.keys("?")
        text = self.shows("^ q  +quit")
        helped = [line[1:16].strip() for line in text.split(" q  ")[0].splitlines()[3:] if line[1:16].strip() and line[16:17].strip() and line[15:16] == " "]
        page = (pathlib.Path(__file__).parents[2] / "docs" / "top.md").read_text().split("## Keys")[1].split("## ")[0]
        documented = re.findall(r"(?m)^\| `([^`]+)` \|", page)
        self.assertGreater(len(documented), 10)
        self.assertEqual(documented, [*helped, "q"])

    def test_restarts(self):
        result = self.sonde("run", "-q", "--record", self.root / "kept", "--restart-on-exit=42", "--", "sh", "-c", "[ $SONDE_RESTART = 2 ] && exit 3; exit 42")
        self.assertEqual(result.returncode, 3, result.stderr)
        text = self.sonde("top", "--once", self.root / "kept").stdout
        self.assertIn("ended, exit code 3", text)
        self.assertIn("  2 restarts", text)

    def test_ranks_and_drill_down(self):
        lines = "".join(f"own {10 * rank + step} rank={rank}\\nother {rank} rank={rank} gpu={rank % 2}\\nplain 7\\n" for step in range(3) for rank in (0, 1, 10))
        result = self.sonde("run", "-q", "-l", "2", "--rate", "0.1", "--record", self.root / "kept", "--", "sh", "-c", f"printf '{lines}' | sonde put; sleep 1")
        self.assertEqual(result.returncode, 0, result.stderr)
        host = os.uname().nodename.split(".")[0]
        self.terminal(120, 40)
        self.top(self.root / "kept")
        self.keys("-", "-", "-", "-")  # buckets of a minute: the points stay visible
        self.keys("6")
        text = self.shows(r"^RANK.* 3 .*own.*other", r"^rank 0 .* 0 ", r"^rank 10 .* 10 ")
        self.assertNotIn("plain", text.split("RANK")[1])  # without a rank
        self.assertLess(text.index("\nrank 1 "), text.index("\nrank 10 "))
        self.keys("Down", "Down", "Enter")
        text = self.shows(rf"^> {re.escape(host)} > rank 10 ", r"^METRIC.* 2 ", r"^own +10[01](\.\d)? ", r"^other +10 ")
        self.keys("Down", "Enter")
        text = self.shows(rf"> {re.escape(host)} > rank 10 > own ", r"^SERIES.* 1 ", r"^.*rank=10.* +10[01]")
        self.keys("Escape")
        self.shows(r"^METRIC.* 2 ")
        self.keys("Escape")
        self.shows(r"^RANK.* 3 ")
        self.keys("1", "Enter")
        self.shows(rf"^> {re.escape(host)} ", r"^RANK.* 3 ", "^PROCESS", r"^METRIC.* 3 ")
        self.keys("q")
        self.clean()

    # ---- golden screens

    SIZES = ((80, 24), (120, 40), (300, 100))
    GOLDEN = pathlib.Path(__file__).parent / "golden"

    @contextlib.contextmanager
    def shown_at(self, columns, rows, where):
        """Shows `sonde top` in a terminal of that size, as one part of a test. If the part fails,
        top also ends, so that the next size begins in the shell."""
        with self.subTest(f"{columns}x{rows}"):
            try:
                self.top_at(columns, rows, where)
                yield
            finally:
                self.keys("q")
                self.clean()

    def golden(self, name, text):
        """Compares a screen with the file of that name; UPDATE_GOLDEN=1 writes it anew."""
        path = self.GOLDEN / f"{name}.txt"
        text = "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"{name} differs; look at it, then write it anew with UPDATE_GOLDEN=1")

    def top_at(self, columns, rows, where):
        self.tmux("resize-window", "-x", columns, "-y", rows)
        self.top(where)
        until(lambda: self.screen().splitlines()[rows - 1:rows] and self.screen().splitlines()[rows - 1].startswith("q quit"), f"a screen of {rows} rows")

    def test_golden_screens_of_a_recording(self):
        """Draws the nodes, then the metrics two bars earlier, as a user of that terminal sees
        them."""
        folder, _ = self.recording()
        self.terminal(*self.SIZES[0])
        for columns, rows in self.SIZES:
            with self.shown_at(columns, rows, folder):
                self.golden(f"top-recorded-{columns}x{rows}", self.shows(r"^n1 +10\.0 ", r"^n2 +20\.0 ", r"end .*03:01:59"))
                self.keys("4", "Left", "Left")
                self.golden(f"top-recorded-metrics-{columns}x{rows}", self.shows(r"at .*03:01:57", "^own_metric"))

    def test_golden_screens_of_a_running_job(self):
        """The values are constant, also for the time before the job, so that every bar exists; bars
        have 5 s, because on a busy machine a second may lack a value."""
        script = self.root / "emits.sh"
        script.write_text('''now=$(date +%s)
            for age in $(seq 320 -1 0); do
                for rank in 0 1; do echo "put loss $((now - age)) 0.$((rank + 5)) rank=$rank"; echo "put level $((now - age)) $((rank * 100)) rank=$rank"; done
            done | sonde put
            while sleep 0.1; do
                for rank in 0 1; do echo "loss 0.$((rank + 5)) rank=$rank"; echo "level $((rank * 100)) rank=$rank"; done
            done | sonde put''')
        self.start("run", "-q", "-l", "1", "--", "sh", script, env={"SONDE_JOB": "train"})
        self.job()
        self.terminal(*self.SIZES[0])
        for columns, rows in self.SIZES:
            with self.shown_at(columns, rows, "train"):
                self.keys("6", "-", "-")
                # The time in the first line appears with the first answer about the job.
                text = self.shows(r"running +[\d.]+", r"^rank 0 \S+ +0\.50 ▁+ +0 ▁+ *$", r"^rank 1 \S+ +0\.60 █+ +100 █+ *$")
                # The first lines have times and counts, the rows the node's name.
                head, ranks = text.split("RANK", 1)
                head = re.sub(r" +", " ", re.sub(r"[\d.:-]*\d[\d.:-]*(?: ?[kMG]\b|m?s\b)?", "#", head.replace(str(script), "SCRIPT")))
                ranks = re.sub(rf"(?m)^(rank \d) {re.escape(os.uname().nodename.split('.')[0])} +", r"\1 HOST ", ranks)
                self.golden(f"top-live-{columns}x{rows}", head + "RANK" + ranks)

    # ---- small terminals, and sudden ends

    def test_small_and_dumb(self):
        folder, _ = self.recording()
        self.terminal(40, 10)
        self.keys(f"{SONDE} top {folder}", "Enter")
        text = self.shows("^q quit", "^n1", "^n2")
        self.assertTrue(all(len(line) <= 40 for line in text.splitlines()))
        self.keys("?")
        self.shows("the next view")
        self.keys("PageDown", "PageDown", "PageDown", "PageDown")
        self.shows("^ q  +quit")
        self.keys("q")
        self.clean()
        self.one_line(self.sonde("top", folder, env={"TERM": "dumb"}), 2, "needs a terminal")

    def test_ended_while_the_size_changes(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        for columns in (60, 100, 80):
            self.top(folder)
            pid = self.top_pid()
            for more in range(5):
                self.tmux("resize-window", "-x", columns + more, "-y", 24 + more)
                os.kill(pid, signal.SIGWINCH)
            os.kill(pid, signal.SIGTERM)
            self.tmux("resize-window", "-x", 80, "-y", 24)
            until(lambda: not any(f"{SONDE} top" in text and "bash" not in text for text in self.alive().values()), "sonde top has ended")
            self.clean()

    def test_a_terminal_that_goes_away(self):
        folder, _ = self.recording()
        self.terminal(80, 24)
        self.top(folder)
        self.top_pid()
        self.tmux("kill-session")
        until(lambda: not any(f"{SONDE} top" in text for text in self.alive().values()), "sonde top has ended")

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
        self.assertEqual(drawn, "".join(sorted(drawn)))  # ascending
        self.assertEqual((drawn[0], drawn[-1]), ("▁", "█"))
        self.assertIn("03:00:00", lines[3])
        self.assertTrue(self.sonde("query", "--plot", "own_metric", folder, env={"LC_ALL": "C"}).stdout.isascii())
        self.one_line(self.sonde("query", "--plot", "--json", "own_metric", folder), 2, "--plot")


if __name__ == "__main__":
    main()
