"""Whatever names programs, nodes and files have, no command prints anything that a terminal
interprets."""

import os
import re
import sys

from place import SONDE, Place, main

# Sequences that set the window's title, make the terminal type a report, clear the screen, begin a
# second line; CSI as one character; reversed text.
HOSTILE = ["\x1b]0;owned\x07", "\x1b[6n", "\x1b[2J", "a\rb", "\x9b31m", "\u202egnp", "\x7f"]


class Terminal(Place):
    def harmless(self, result):
        # JSON is for programs, so its letters stay unchanged
        layout = "" if "--json" in result.args else r"\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069"
        for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
            bad = re.findall(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{layout}]", text.replace("\r\n", "\n"))
            self.assertEqual(bad, [], f"{name} of {result.args}: {text!r}")

    def hostile_run(self):
        """Makes a recording with hostile tags, annotations and script. libsonde accepts any text as
        a tag's value."""
        program = self.root / "program.py"
        program.write_text(f"""
import os, signal, subprocess
for text in {HOSTILE!r}:
    emitter = subprocess.Popen([{os.environ["EMITTER"]!r}], env=os.environ | {{"SONDE_TAGS": "who=" + text}}, stdout=subprocess.PIPE)
    emitter.stdout.readline()
    subprocess.run([{SONDE!r}, "annotate", text, "who=" + text])
    emitter.send_signal(signal.SIGTERM)
    emitter.wait()
""")
        record = self.root / "kept"
        script = "name=odd printf 'loss\\033[2J 1\\n'; printf '\\033]0;x\\007\\n' >&2; exit 3"
        result = self.sonde("run", "--record", record, "--script", script, "--", sys.executable, program)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.harmless(result)
        return record

    def test_recordings(self):
        record = self.hostile_run()
        for arguments in (["query", "--list", record], ["query", "tick", record], ["query", "sum:tick{who=*}", record], ["query", "none:tick", record],
                          ["query", "--csv", "sum:tick{who=*}", record], ["query", "--json", "sum:tick{who=*}", record], ["query", "--list", "--json", record],
                          ["detect", "--by", "who", "--every", "1", "tick", record], ["detect", "--by", "who", "--every", "1", "--json", "tick", record],
                          ["inspect", record]):
            result = self.sonde(*arguments)
            self.harmless(result)
            if arguments[0] != "inspect" and "--json" not in arguments:
                self.assertIn("\\x1b]0;owned\\x07", result.stdout, arguments)
        self.assertIn(",a\\rb,", self.sonde("query", "--csv", "sum:tick{who=*}", record).stdout)

    def test_names_of_files(self):
        record = self.hostile_run()
        odd = self.root / "\x1b[2Jodd\n"
        record.rename(odd)
        for arguments in (["inspect", odd], ["query", "--list", odd], ["query", "no\x1b[2Jmetric", odd], ["query", "sum:lo\x1bs", odd], ["replay", str(odd) + "\x1b"],
                          ["inspect", str(odd) + "x"], ["detect", "x\x1b[2J", odd], ["run", "-q", "no\x1b[2Jcommand"], ["run", "--ra\x1bte=1", "true"], ["\x1b[2J"],
                          ["run", "--rate=\x1b", "true"], ["help", "\x1b"], ["put", "x\x1b", "1"], ["query", "--start=\x1b", "tick", odd], ["metrics", "\x1b"]):
            self.harmless(self.sonde(*arguments))

    def test_a_running_job(self):
        script = "name=odd rate=0.1 printf '\\033]0;x\\007\\n' >&2; exit 3"
        self.start("run", "-v", "--script", script, "--", "sleep", "1000\x1b"[:-1])
        self.job()
        self.harmless(self.sonde("status"))
        self.harmless(self.sonde("status", "--json"))

    def test_a_configuration_file(self):
        config = self.root / "c.yaml"
        for text in ('"\\x1b[2J": 1\n', 'rate: "\\x1b[2J"\n', "\x1b[2J\n", '"a\\nb": 1\n', "rate: [1\n"):
            config.write_text(text)
            self.harmless(self.sonde("run", "--config", config, "true"))


if __name__ == "__main__":
    main()
