"""Help, man page, Markdown, completion, versions: all that is generated from the tables. `--update`
as the last argument rewrites the golden files."""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

from place import Place, main

HERE = pathlib.Path(__file__).parent
TABLES = HERE.parent.parent / "src/cli"
COMMANDS = re.findall(r"^COMMAND\(\w+, ([a-z]+),", (TABLES / "commands.def").read_text(), re.M)
# (command, option) from the table of options.
OPTIONS = [(command.lower(), name) for name, commands in re.findall(r"^OPTION\(\w+, \"([a-z-]+)\",.*?((?:\| |, )ON\(.*?\)),", (TABLES / "options.def").read_text(), re.M | re.S)
           for command in re.findall(r"ON\((\w+)\)", commands)]
UPDATE = sys.argv[-1] == "--update" and bool(sys.argv.pop())


class Help(Place):
    def golden(self, name, text):
        path = HERE / "golden" / name
        if UPDATE:
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"{name} is not what the table says; tests/cli/test_help.py --update writes it anew")

    def test_help_of_each_command(self):
        for command in COMMANDS:
            result = self.sonde(command, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.golden(f"help-{command}.txt", result.stdout)
            self.assertEqual(self.sonde("help", command).stdout, result.stdout)
            self.assertEqual(self.sonde(command, "-h").stdout, result.stdout)
            for line in result.stdout.splitlines():
                self.assertLessEqual(len(line), 90, line)

    def test_overview(self):
        result = self.sonde("help")
        self.golden("help.txt", result.stdout)
        self.assertEqual(self.sonde("--help").stdout, result.stdout)
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", result.stdout)
        bare = self.sonde()
        self.assertEqual((bare.returncode, bare.stdout, bare.stderr), (2, "", result.stdout))

    def test_reference_page_is_what_the_table_says(self):
        text = self.sonde("help", "--markdown").stdout
        path = HERE.parent.parent / "docs" / "cli.md"
        if UPDATE:
            path.write_text(text)
        self.assertEqual(text, path.read_text(), "docs/cli.md: write it anew with sonde help --markdown > docs/cli.md")

    def test_man_page(self):
        text = self.sonde("help", "--man").stdout
        self.assertTrue(text.startswith('.TH SONDE 1 '))
        for command in COMMANDS:
            self.assertIn(f".SS sonde {command}\n", text)
        try:
            groff = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-K", "utf8"], input=text, capture_output=True, text=True)
        except OSError:  # not installed
            return
        self.assertEqual((groff.returncode, groff.stderr), (0, ""))
        self.assertIn("telemetry", groff.stdout)

    def test_a_man_page_for_each_command(self):
        build = (TABLES / "pages/meson.build").read_text()
        self.assertEqual(re.findall(r"'([a-z]+)'", re.search(r"^commands = \[(.*?)\]", build, re.M | re.S)[1]), COMMANDS)
        for command in COMMANDS:
            text = self.sonde("help", "--man", command).stdout
            self.assertTrue(text.startswith(f".TH SONDE\\-{command.upper()} 1 "), text[:80])
            for name in [name for of, name in OPTIONS if of == command]:
                self.assertIn("\\-\\-" + name.replace("-", "\\-") + "\\fR", text)
            try:
                groff = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-K", "utf8"], input=text, capture_output=True, text=True)
            except OSError:  # not installed
                continue
            self.assertEqual((groff.returncode, groff.stderr), (0, ""), command)

    def test_every_option_is_in_the_man_page_and_in_every_shell(self):
        self.assertIn(("simulate", "seed"), OPTIONS)
        man = {name: section for name, section in re.findall(r"^\.SS sonde ([a-z]+)\n(.*?)(?=^\.S)", self.sonde("help", "--man").stdout, re.M | re.S)}
        bash = dict(re.findall(r"^    ([a-z]+)\) options='(.*)';;$", self.sonde("completion", "bash").stdout, re.M))
        zsh = dict(re.findall(r"^        ([a-z]+)\) _arguments -s \\\n(.*?);;$", self.sonde("completion", "zsh").stdout, re.M | re.S))
        fish = self.sonde("completion", "fish").stdout
        self.assertEqual([sorted(part) for part in (man, bash, zsh)], [sorted(COMMANDS)] * 3)
        for command, name in OPTIONS:
            with self.subTest(command=command, option=name):
                self.assertIn("\\-\\-" + name.replace("-", "\\-") + "\\fR", man[command])
                if name == "control-fd":  # internal: only sonde's own processes use it
                    continue
                self.assertIn(f"--{name}", bash[command].split())
                self.assertRegex(zsh[command], rf"--{name}[\[)}}]")
                self.assertRegex(fish, rf"(?m)^complete -c sonde -n '__fish_seen_subcommand_from {command}' -l {name} ")

    def test_version(self):
        for spelling in ("version", "--version", "-V"):
            self.assertRegex(self.sonde(spelling).stdout, r"^sonde \d+\.\d+\.\d+\n$")

    def test_colours_on_terminals(self):
        def on_terminal(**env):
            master, slave = pty.openpty()
            subprocess.run([os.environ["SONDE"], "help"], stdout=slave, env=self.env | {"TERM": "xterm"} | env, check=True)
            os.close(slave)
            text = b""
            try:
                while piece := os.read(master, 65536):
                    text += piece
            except OSError:
                pass # all output is read
            os.close(master)
            return text
        self.assertIn(b"\033[1mCommands\033[0m", on_terminal())
        self.assertNotIn(b"\033", on_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\033", on_terminal(TERM="dumb"))

    def test_no_colours_without_terminal(self):
        for arguments in (["help"], ["run", "--help"], ["doctor"]):
            self.assertNotIn("\033", self.sonde(*arguments).stdout)


class Mistakes(Place):
    def test_unknown_command(self):
        self.one_line(self.sonde("rnu", "true"), 2, "unknown command 'rnu'", "did you mean run?")
        self.one_line(self.sonde("xyzzy"), 2, "unknown command 'xyzzy'", "sonde help")
        self.one_line(self.sonde("help", "statsu"), 2, "did you mean sonde help status")

    def test_unknown_option(self):
        self.one_line(self.sonde("run", "--prot", "1", "true"), 2, "--prot", "did you mean --port?")
        self.one_line(self.sonde("query", "--telemetry-level", "1", "x"), 2, "--telemetry-level", "sonde query --help")
        self.one_line(self.sonde("run", "-Z", "true"), 2, "-Z")

    def test_values(self):
        self.one_line(self.sonde("run", "-l", "5", "true"), 2, "-l", "'5' is not a whole number from 0 to 4")
        self.one_line(self.sonde("run", "--port=0", "true"), 2, "--port", "from 1 to 65535")
        self.one_line(self.sonde("run", "--rate", "nan", "true"), 2, "--rate", "seconds from 0.01 to 3600")
        self.one_line(self.sonde("run", "--port"), 2, "--port needs a value")
        self.one_line(self.sonde("run"), 2, "missing", "sonde run [--] COMMAND")
        self.one_line(self.sonde("version", "now"), 2, "'now' is one argument too many")
        self.one_line(self.sonde("run", "true", env={"SONDE_LEVEL": "9"}), 2, "SONDE_LEVEL", "'9'")
        self.one_line(self.sonde("completion", "tcsh"), 2, "tcsh", "bash, zsh and fish")


class Completion(Place):
    def complete(self, *words, line=""):
        script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_WORDS[0]=$0; COMP_CWORD=$(($#-1)); _sonde; printf "%s\\n" "${COMPREPLY[@]}"'
        result = subprocess.run(["bash", "-c", script, self.sonde_path, *words], capture_output=True, text=True, cwd=self.root,
                                env=self.env | ({"COMP_LINE": line, "COMP_POINT": str(len(line))} if line else {}))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    def setUp(self):
        super().setUp()
        self.sonde_path = os.environ["SONDE"]

    def test_bash(self):
        self.assertEqual(self.complete("sonde", "ru"), ["run"])
        self.assertEqual(self.complete("sonde", "run", "--no-"), ["--no-record", "--no-report"])
        self.assertEqual(self.complete("sonde", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("sonde", "import", "--format", "w"), ["wide-csv"])
        for command in ("run", "simulate"): # these commands end with another program's name
            self.assertIn("true", self.complete("sonde", command, "tru"))
        self.assertEqual(self.complete("sonde", "help", "do"), ["doctor"])
        self.assertEqual(self.complete("sonde", "run", "--record", "ru"), [])
        (self.root / "rundown").mkdir()
        self.assertEqual(self.complete("sonde", "run", "--record", "ru"), ["rundown"])
        self.assertNotIn("--control-fd", self.complete("sonde", "agent", "--"))
        self.assertEqual(self.complete("sonde", "run", "--trace", "m"), ["mpi"])
        self.assertEqual(self.complete("sonde", "run", "--trace", "python,i"), ["python,io"])
        self.assertEqual(self.complete("sonde", "run", "--trace", "io,i"), [])

    def test_words_that_only_data_know(self):
        self.assertEqual((self.complete("sonde", "query", "lo"), self.complete("sonde", "query", "--job", "")), ([], []))
        lines = "".join(f"put loss 1795173000 1 rank={rank}\n" for rank in (2, 10)) + "other,bad=$(id) v=1\n"
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=lines, env={"SONDE_JOB": "known"}).returncode, 0)
        other = next(name for name in self.names("known") if name != "loss")
        for words, found in (
            (["query", "lo"], ["loss"]), (["query", "avg:1s-avg:lo"], ["avg:1s-avg:loss"]), (["query", "loss{r"], ["loss{rank="]),
            (["query", "loss{rank="], ["loss{rank=2", "loss{rank=10"]), (["query", "loss{rank=1"], ["loss{rank=10"]),
            (["query", "--job", "k"], ["known"]), (["query", "--tags", "l"], ["loss"]), (["query", "loss", "kn"], ["known"]), (["detect", "ot"], [other]),
            (["replay", "kn"], ["known"]), (["query", other + "{bad="], []), (["query", "none{"], []),
        ):
            self.assertEqual(self.complete("sonde", *words), found, words)
        # With the words as bash splits them.
        self.assertEqual(self.complete("sonde", "query", "avg", ":", "lo", line="sonde query avg:lo"), ["loss"])
        self.assertEqual(self.complete("sonde", "query", "loss{rank", "=", "1", line="sonde query loss{rank=1"), ["10"])
        self.one_line(self.sonde("completion", "bash", "x"), 2, "'x' is one argument too many")

    def in_zsh(self, line):
        """What zsh runs after the Tab key at the end of `line`."""
        (self.root / ".zshrc").write_text('autoload -Uz compinit; compinit -D; eval "$(sonde completion zsh)" 2>/dev/null; compdef _sonde sonde\n'
                                          'sonde() { if [[ $1 == completion ]]; then command sonde "$@"; else print -r -- "ran: $*"; exit; fi }\n')
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe("zsh", ["zsh", "-d", "-i"], self.env | {"TERM": "dumb", "ZDOTDIR": str(self.root)})
        os.write(terminal, f"{line}\t\nexit\n".encode())
        said = b""
        try:
            while part := os.read(terminal, 65536):
                said += part
        except OSError:  # the end of a terminal
            pass
        os.close(terminal)
        os.waitpid(child, 0)
        return re.findall(r"^ran: (.*?)\s*$", said.decode(errors="replace"), re.M)

    def in_fish(self, line):
        done = subprocess.run(["fish", "-N", "-c", f"sonde completion fish | source; complete -C '{line}'"], capture_output=True, text=True, env=self.env, cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    def test_ids_of_runs(self):
        """Each shell completes the ids of recordings, for each command that takes them."""
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--name", "given", "--", "sonde", "put", "loss", "1", env={"SONDE_JOB": "known-7"}).returncode, 0)
        for command in ("report", "compare", "ls", "replay", "rm", "mv", "merge", "top"):
            self.assertEqual(self.complete("sonde", command, "kn"), ["known-7"], command)
        for shell, ask in (("zsh", lambda word: self.in_zsh(f"sonde report {word}")), ("fish", lambda word: self.in_fish(f"sonde report {word}"))):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed: tools/deps test")
                self.assertEqual(ask("kn"), ["report known-7" if shell == "zsh" else "known-7"])
                self.assertEqual(ask("--js"), ["report --json" if shell == "zsh" else "--json"])

    def test_other_shells(self):
        for shell in ("zsh", "fish"):
            text = self.sonde("completion", shell).stdout
            for word in [*COMMANDS, "telemetry-level", "stop-timeout"]:
                self.assertIn(word, text)
            try:
                subprocess.run([shell, "-n"], input=text, text=True, check=True)
            except OSError:  # not installed
                pass


if __name__ == "__main__":
    main()
