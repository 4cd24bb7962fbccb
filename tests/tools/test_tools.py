"""Tests the tools that `make` calls. For example, a campaign prints the command that repeats a
failure, `make clean` removes only build folders, and the message about a build folder without write
permission gives advice."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(os.environ["PROJECT"])
FAILS_WITH_ODD_SEEDS = """#!/bin/sh
echo "seed $SONDE_TEST_SEED, $SONDE_TEST_ROUNDS rounds"
[ $((SONDE_TEST_SEED % 2)) = 0 ]
"""
MESON = """project('x')
test('odd', find_program('odd.sh'), suite: ['unit', 'random'])
test('skipped', find_program('skipped.sh'), suite: 'random')
test('other', find_program('false'), suite: 'unit')
"""
SETTINGS = ("BUILD", "MAKEFLAGS", "FUZZ_COMPARISONS", "SONDE_TEST_SEED", "SONDE_TEST_ROUNDS")


class Tools(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sonde tools "))
        self.addCleanup(shutil.rmtree, self.root)

    def run_it(self, *command, **env):
        """The tools' own settings come from the test only, not from who runs the tests."""
        kept = {name: os.environ[name] for name in os.environ if name not in SETTINGS}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=self.root, env=kept | env
        )

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


class Campaign(Tools):
    def setUp(self):
        super().setUp()
        self.write("meson.build", MESON)
        self.write("odd.sh", FAILS_WITH_ODD_SEEDS)
        self.write("skipped.sh", "#!/bin/sh\nexit 77\n")
        set_up = self.run_it("meson", "setup", "a build")
        self.assertEqual(set_up.returncode, 0, set_up.stdout + set_up.stderr)

    def campaign(self, seed):
        return self.run_it(PROJECT / "tools/campaign", "--rounds", "3", "a build", "0", str(seed))

    def test_the_printed_command_repeats_a_failure(self):
        done = self.campaign(7)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("seed 7, 3 rounds", done.stdout)
        self.assertRegex(done.stdout, r"1 runs of 2 tests with seeds 7 to 7 in .* 1 failures\n$")
        [again] = re.findall("again: (.*)", done.stdout)
        self.assertNotEqual(self.run_it("sh", "-c", again).returncode, 0)
        another = self.run_it("sh", "-c", again.replace("SEED=7", "SEED=8"))
        self.assertEqual(another.returncode, 0, another.stdout)

    def test_all_pass(self):
        """Only tests of the suite `random` run."""
        done = self.campaign(8)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"1 runs of 2 tests with seeds 8 to 8 in .* 0 failures\n$")

    def test_no_build_folder(self):
        done = self.run_it(PROJECT / "tools/campaign", "none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none is not a build folder: make builds one", done.stderr)


class Suite(unittest.TestCase):
    def test_every_randomized_test_is_in_the_campaign(self):
        """A test that reads SONDE_TEST_SEED is in the suite `random`."""
        listed = subprocess.run(
            ["meson", "introspect", "--tests", os.environ["BUILD_FOLDER"]], capture_output=True
        )
        commands = [
            " ".join(test["cmd"])
            for test in json.loads(listed.stdout)
            if any(suite.endswith(":random") for suite in test["suite"])
        ]
        randomized = [
            path
            for path in (PROJECT / "tests").rglob("test_*")
            if path.suffix in (".c", ".py")
            and path != pathlib.Path(__file__).resolve()
            and re.search(r"SONDE_TEST_SEED|unit/seed\.h|\.\./seed\.h", path.read_text())
        ]
        self.assertGreater(len(randomized), 4)
        for path in randomized:
            # A program in C is named test_[LAYER_]NAME and is in the folder of its source.
            name = path.name if path.suffix == ".py" else path.stem.removeprefix("test_")
            wanted = re.compile(rf"/{path.parent.name}/(test_)?(\w+_)?{re.escape(name)}( |$)")
            self.assertTrue(any(map(wanted.search, commands)), f"{path} is not in the suite random")


class Results(Tools):
    def test_a_failed_test_is_named_with_its_reason(self):
        """The last lines of a run tell which cases failed and why, because the logs of a remote
        machine are often shortened."""
        self.write("meson.build", "project('x')\ntest('wide', find_program('wide.sh'))\ntest('quiet', find_program('quiet.sh'))\n")
        self.write("wide.sh", "#!/bin/sh\nseq 1000\necho 'not ok 3 - the third'\necho '  AssertionError: 1 is not 2' >&2\nseq 1000\nexit 1\n")
        self.write("quiet.sh", "#!/bin/sh\nseq 20\nexit 1\n")
        set_up = self.run_it("meson", "setup", "a build")
        self.assertEqual(set_up.returncode, 0, set_up.stdout + set_up.stderr)
        self.run_it("meson", "test", "--num-processes", "1", "-C", "a build")
        done = self.run_it(PROJECT / "tools/test-results", "a build")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        said = re.sub(r"[\d.]+ s\)", "", done.stdout)
        self.assertIn("failed: wide (FAIL, \n    not ok 3 - the third\n      AssertionError: 1 is not 2\n", said)
        self.assertIn("failed: quiet (FAIL, \n    9\n", said)
        self.assertTrue(said.endswith("    20\n0 passed, 2 failed, 0 skipped\n"), said)

    def test_a_test_that_passes_when_it_runs_again(self):
        self.write("meson.build", "project('x')\ntest('once', find_program('once.sh'), suite: 'a')\ntest('never', find_program('false'))\n")
        self.write("once.sh", f"#!/bin/sh\n[ -e '{self.root}/ran' ] && exit\n>'{self.root}/ran'\necho 'not ok 1 - the first'\nexit 1\n")
        self.run_it("meson", "setup", "a build")
        self.run_it("meson", "test", "--num-processes", "1", "-C", "a build")
        again = self.run_it(PROJECT / "tools/test-results", "--again", "a build")
        self.assertEqual((again.returncode, again.stdout), (0, "once\nnever\n"))
        self.run_it("meson", "test", "--num-processes", "1", "-C", "a build", "--logbase", "testlog-again", *again.stdout.split())
        done = self.run_it(PROJECT / "tools/test-results", "a build")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"unsteady, passed when it ran again alone: x:a / once \(FAIL, .* s\)\n    not ok 1 - the first\nfailed: x / never \(FAIL")
        self.assertTrue(done.stdout.endswith("0 passed, 1 failed, 0 skipped, 1 unsteady\n"), done.stdout)

    def test_all_passed(self):
        self.write("meson.build", "project('x')\ntest('one', find_program('true'))\n")
        self.run_it("meson", "setup", "a build")
        for log in ("testlog", "testlog-unit"):
            self.run_it("meson", "test", "--num-processes", "1", "-C", "a build", "--logbase", log)
        done = self.run_it(PROJECT / "tools/test-results", "a build")
        self.assertEqual((done.returncode, done.stdout), (0, "2 passed, 0 failed, 0 skipped\n"))


class Sanitize(Tools):
    ONCE = "#!/bin/sh\n[ -e '{0}' ] && exit\n>'{0}'\necho '{1}' >&2\nexit 1\n"

    def sanitize(self, *fails):
        """Each test fails in its first run only."""
        self.write("meson.build", "project('x')\n" + "".join(f"test('t{i}', find_program('t{i}.sh'), suite: 'unit')\n" for i in range(len(fails))))
        for i, words in enumerate(fails):
            self.write(f"t{i}.sh", self.ONCE.format(self.root / f"ran {i}", words))
        for kind in ("fuzz", "thread"):
            self.run_it("meson", "setup", f"x-{kind}")
        return self.run_it(PROJECT / "tools/sanitize", BUILD="x")

    def test_what_passes_alone_is_unsteady(self):
        done = self.sanitize("late", "late, too")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 passed, 0 failed, 0 skipped, 2 unsteady", done.stdout)

    def test_a_report_of_a_sanitizer_is_a_failure(self):
        for words in ("WARNING: ThreadSanitizer: data race", "==1==ERROR: LeakSanitizer: detected memory leaks", "a.c:3:5: runtime error: shift exponent"):
            done = self.sanitize(words)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("fail under: address,undefined\n", done.stderr)
            shutil.rmtree(self.root)
            self.root.mkdir()

    def test_three_failures_are_no_chance(self):
        done = self.sanitize("late", "late", "late")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("0 passed, 3 failed, 0 skipped", done.stdout)


class Fuzz(Tools):
    def test_what_the_fuzzer_learns(self):
        """All, or with FUZZ_COMPARISONS=no nothing about comparisons and calls."""
        self.write("meson.build", "project('x', 'c')\n")
        self.write("meson_options.txt", "option('fuzz', type: 'boolean')\noption('tests', type: 'feature')\n")
        for folder, env in (("all", {}), ("less", {"FUZZ_COMPARISONS": "no"})):
            done = self.run_it(PROJECT / "tools/fuzz", "--setup", BUILD=folder, **env)
            self.assertEqual((done.returncode, done.stdout), (0, f"{folder}-fuzz\n"), done.stderr)
            options = json.loads(self.run_it("meson", "introspect", f"{folder}-fuzz", "--buildoptions").stdout)
            arguments = next(option["value"] for option in options if option["name"] == "c_args")
            self.assertEqual("-fno-sanitize-coverage=trace-cmp,indirect-calls,stack-depth" in arguments, folder == "less", arguments)


class Make(Tools):
    def make(self, *arguments):
        return self.run_it("make", "--no-print-directory", "-f", PROJECT / "Makefile", *arguments)

    def test_clean_removes_what_meson_made(self):
        for name in ("build", "build-thread", "elsewhere", "elsewhere-fuzz"):
            self.write(f"{name}/meson-private/x", "")
        for name in ("build-notes", "elsewhere-notes", "-mine"):
            self.write(f"{name}/notes", "not committed")
        for arguments, left in (
            ((), ["-mine", "build-notes", "elsewhere", "elsewhere-fuzz", "elsewhere-notes"]),
            (("BUILD=elsewhere",), ["-mine", "build-notes", "elsewhere-notes"]),
        ):
            self.assertEqual(self.make("clean", *arguments).returncode, 0)
            self.assertEqual(sorted(path.name for path in self.root.iterdir()), left)

    def test_an_empty_build_folder_is_refused(self):
        for target in ("clean", "test"):
            done = self.make(target, "BUILD=")
            self.assertEqual(done.returncode, 2)
            self.assertIn("BUILD is empty", done.stderr)

    def test_a_build_folder_that_cannot_be_written_to(self):
        """The message gives advice, because the checkout may be read-only."""
        done = self.run_it(PROJECT / "tools/setup", "/proc/sonde-build", "/usr/local", "lib")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to the build folder /proc/sonde-build", done.stderr)
        self.assertIn("make BUILD=", done.stderr)


class Layering(Tools):
    """Each test puts an error into a copy of the sources and docs."""

    @classmethod
    def setUpClass(cls):
        cls.tree = pathlib.Path(tempfile.mkdtemp(prefix="sonde layering "))
        cls.addClassCleanup(shutil.rmtree, cls.tree)
        for name in ("src", "include", "docs"):
            shutil.copytree(PROJECT / name, cls.tree / name)

    def change(self, name, change):
        path = self.tree / name
        before = path.read_text()
        self.addCleanup(path.write_text, before)
        path.write_text(change(before))

    def add_include(self, name, header):
        self.change(name, lambda text: f'#include "{header}"\n{text}')

    def check(self):
        return self.run_it(PROJECT / "tools/layering", self.tree)

    def fails(self, *texts):
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_the_tree(self):
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_upward_include(self):
        self.add_include("src/store/seal.c", "query/query.h")
        self.fails(
            "src/store/seal.c:1: upward include of query/query.h: store may include base",
            "docs/architecture.md:",
        )

    def test_an_include_of_a_neighbour(self):
        self.add_include("src/faces/web/page.c", "faces/opentsdb/write.h")
        self.fails("src/faces/web/page.c:1: undeclared include of faces/opentsdb/write.h")

    def test_another_header_of_a_folder(self):
        """ingest may include emit/segment.h, but no other header of emit."""
        self.add_include("src/ingest/rings.c", "emit/ring.h")
        self.fails("src/ingest/rings.c:1: undeclared include of emit/ring.h")

    def test_a_new_folder(self):
        self.addCleanup(shutil.rmtree, self.tree / "src/later")
        (self.tree / "src/later").mkdir()
        (self.tree / "src/later/later.c").write_text('#include "base/str.h"\n')
        self.fails("later has no row in the table of docs/architecture.md")

    def test_a_table_that_points_up(self):
        row = "| `store` | `base` |"
        self.change("docs/architecture.md", lambda text: text.replace(row, "| `store` | `query` |"))
        self.fails("store may not include query: no row above names it")

    def test_a_circle(self):
        self.add_include("src/base/bytes.h", "base/map.h")
        self.add_include("src/base/map.c", "base/bytes.h")
        self.fails(
            "src/base: bytes, map include one another",
            "src/base/bytes.h:1 includes map",
            "src/base/map.c:1 includes bytes",
        )

    def test_a_circle_that_is_mended(self):
        circle = "| `base` | `bytes`, `map` | mended |\n"
        row = "| `cli` | `commands`"
        self.change("docs/architecture.md", lambda text: text.replace(row, circle + row))
        self.fails("bytes, map of base are not one circle any more")

    def test_an_exception_that_is_mended(self):
        head = "| file | includes | reason |\n|---|---|---|\n"
        row = "| `store/seal.c` | `query/query.h` | mended |\n"
        self.change("docs/architecture.md", lambda text: text.replace(head, head + row))
        self.fails("store/seal.c does not include query/query.h any more")


class Columns(Tools):
    WIDE = "a sentence of short words " * 4

    def check(self, *arguments):
        self.run_it("git", "init", "--quiet")
        self.run_it("git", "add", "-A")
        return self.run_it(PROJECT / "tools/columns", self.root, *arguments)

    def test_a_wide_line_fails(self):
        for name, text in (
            ("src/base/str.c", f"int a; // {self.WIDE}\n"),
            ("include/a.hpp", f"int a; // {self.WIDE}\n"),
            ("tests/a.cpp", f"int a; /* {self.WIDE} */\n"),
            ("tests/a.mjs", f"let a; // {self.WIDE}\n"),
            ("web/b.ts", f"let a; // {self.WIDE}\n"),
            ("web/a.css", f"/* {self.WIDE} */\n"),
            ("bindings/a.go", f"var a = `http://x` // {self.WIDE}\n"),
            ("bindings/A.java", f"/** {self.WIDE} */\n"),
            ("bindings/a.rs", f"fn a<'a>(x: &'a str) {{}} // {self.WIDE}\n"),
            ("bindings/a.m", f"% {self.WIDE}\n"),
            ("docs/page.md", f"text\n{self.WIDE}\n"),
            ("tools/new.py", f'"""{self.WIDE}"""\n'),
            ("tools/new.sh", f"true # {self.WIDE}\n"),
            ("bindings/a.R", f"f() # {self.WIDE}\n"),
            ("src/meson.build", f"# {self.WIDE}\n"),
            ("tools/new", f"#!/bin/sh\n# {self.WIDE}\n"),
        ):
            with self.subTest(name):
                self.write(name, text.replace(self.WIDE, self.WIDE[:60]))
                self.assertEqual(self.check().returncode, 0)
                self.write(name, text)
                done = self.check()
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{name}:", done.stderr)
                self.assertIn("lines wider than 100 columns: 1", done.stderr)
                (self.root / name).unlink()

    def test_what_cannot_be_wrapped(self):
        link = "https://sonde.example/" + "x" * 100
        cells = "| " + "a cell of a table | " * 8
        block = "```\n" + "code in a block " * 10 + "\n```"
        self.write("docs/page.md", f"{link}\n\n{cells}\n\n{block}\n")
        self.write("docs/made.md", f"Made from a table.\n\n{self.WIDE}\n")
        self.write("src/a.c", 'char text[] = "' + "words // of a string " * 8 + '";\n')
        self.write("bindings/a.go", "var text = `" + "words // of a string " * 8 + "`\n")
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)


@unittest.skipUnless(shutil.which("clang"), "clang is not installed")
class Analyse(Tools):
    def analyse(self, source, path="src/a.c"):
        self.write(path, source)
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root / "build"), "file": f"../{path}", "command": f"cache gcc -O0 -Wduplicated-cond -Wconversion -o a.o -c ../{path}"}]))
        return self.run_it(PROJECT / "tools/analyse", "build")

    def test_sound_code(self):
        done = self.analyse("int f(int a);\nint f(int a)\n{\n    return a;\n}\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_warnings(self):
        for path in ("src/a.c", "tests/a.c"):
            done = self.analyse("int f(long a);\nint f(long a)\n{\n    return a;\n}\n", path)
            self.assertEqual((path, done.returncode), (path, 1))
            self.assertRegex(done.stderr, "a.c:4:.*-Wshorten|a.c:4:.*loses integer precision")

    def test_a_value_that_no_one_reads(self):
        text = "int f(int a);\nint f(int a)\n{\n    a = 3;\n    a = 4;\n    return a;\n}\n"
        done = self.analyse(text)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "a.c:4:.*never read")
        done = self.analyse(text, "tests/a.c")  # the analyser reads only src
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_call_that_is_never_safe(self):
        done = self.analyse("char *mktemp(char *);\nvoid f(char *a);\nvoid f(char *a)\n{\n    mktemp(a);\n}\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "a.c:5:.*mktemp")

    def test_a_folder_without_sources(self):
        self.assertIn("is no build folder", self.run_it(PROJECT / "tools/analyse", self.root).stderr)
        self.write("build/compile_commands.json", "[]")
        done = self.run_it(PROJECT / "tools/analyse", "build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("compiles no C source", done.stderr)


class Missing(Tools):
    """On systems without apt, tools/missing prints the missing packages and the command that
    installs them."""

    def deps(self, *programs, libraries=(), headers=True):
        tools = self.root / "bin"
        tools.mkdir(exist_ok=True)
        for name in programs:
            text = "exit 0"
            if name == "pkg-config":
                text = f'case " {" ".join(libraries)} " in *" $2 "*) ;; *) exit 1 ;; esac'
            elif name == "python3" and not headers:
                text = "exit 1"
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        return subprocess.run(
            [PROJECT / "tools/deps", "build"],
            env={"PATH": str(tools)},
            cwd=PROJECT,
            capture_output=True,
            text=True,
        )

    def test_each_manager(self):
        for manager, command in (
            ("dnf", "dnf install meson ninja-build pkgconf-pkg-config libuv-devel"),
            ("zypper", "zypper install meson ninja pkgconf-pkg-config libuv-devel"),
            ("pacman", "pacman -S meson ninja pkgconf libuv"),
            ("apk", "apk add meson samurai pkgconf libuv-dev"),
            ("spack", "spack install meson ninja pkgconf libuv"),
        ):
            done = self.deps(manager, "cc", "python3")
            self.assertEqual(done.returncode, 1)
            self.assertIn("sonde: missing: meson ninja pkg-config libuv", done.stderr)
            self.assertIn(f"; install them: {command} ", done.stderr)
            shutil.rmtree(self.root / "bin")

    def test_nothing_or_one_is_missing(self):
        tools = ("dnf", "cc", "meson", "ninja", "pkg-config", "python3")
        libraries = "libuv libmicrohttpd yaml-0.1 jansson nettle libzstd zlib".split()
        done = self.deps(*tools, libraries=libraries)
        self.assertEqual(
            done.stderr, "sonde: missing: libcurl; install them: dnf install libcurl-devel\n"
        )
        done = self.deps(*tools, libraries=[*libraries, "libcurl"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = self.deps(*tools, libraries=[*libraries, "libcurl"], headers=False)
        self.assertEqual(
            done.stderr, "sonde: missing: Python.h; install them: dnf install python3-devel\n"
        )

    def test_no_manager(self):
        self.assertIn("docs/dependencies.md", self.deps("cc").stderr)

    def test_apt_installs_the_headers_of_python(self):
        """Without them, `make install` leaves out the Python package."""
        done = self.deps("apt-get", "dpkg-query", "id")  # this `id` does not say root
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"an administrator run: apt-get install .* python3-dev\b")


class Installed(Tools):
    """`make install` prints the command with which a shell finds sonde."""

    def test_another_prefix(self):
        prefix = self.root / "my prefix"
        package = prefix / "lib/python3.9/site-packages/sonde"
        for folder in (prefix / "bin", prefix / "lib/pkgconfig", package):
            folder.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (prefix / "lib/pkgconfig/sonde.pc").write_text(
            f"prefix={prefix}\nName: sonde\nDescription: sonde\nVersion: 1\n"
        )
        path = os.environ["PATH"]
        done = self.run_it(PROJECT / "tools/installed", prefix, "lib")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, line = done.stdout.splitlines()
        self.assertEqual(first, f"installed under {prefix}")
        exported = line.removeprefix("for this shell: ")
        again = self.run_it(
            "sh", "-c", f'{exported}\n"$0" "$1" lib', PROJECT / "tools/installed", prefix, PATH=path
        )
        self.assertEqual(again.stdout, f"installed under {prefix}\n", again.stderr)

    def test_parts_that_are_left_out(self):
        program = self.root / "prefix/bin/sonde"
        program.parent.mkdir(parents=True)
        program.write_text(
            "#!/bin/sh\n[ $1 = config ] && echo 'headers     /usr/include\npython      not installed\n"
            "page        not built, because node or npm was missing'\n"
        )
        program.chmod(0o755)
        done = self.run_it(PROJECT / "tools/installed", self.root / "prefix", "lib")
        self.assertEqual(
            done.stdout.splitlines()[1:3],
            [
                "left out: python (not installed)",
                "left out: page (not built, because node or npm was missing)",
            ],
        )


class Wrap(Tools):
    """tools/wrap wraps comments and paragraphs at 100 columns; drawings and tables stay
    unchanged."""

    WIDE = "a sentence of short words " * 6

    def wrap(self, name, text):
        (self.root / "tools").mkdir(exist_ok=True)
        shutil.copy(PROJECT / "tools/wrap", self.root / "tools/wrap")
        self.write(name, text)
        done = self.run_it(self.root / "tools/wrap", name)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = (self.root / name).read_text()
        self.run_it(self.root / "tools/wrap", name)
        self.assertEqual((self.root / name).read_text(), after, "it changes what it has wrapped")
        return after

    def test_a_comment(self):
        after = self.wrap("a.c", f"    // {self.WIDE}\n    // and more.\n    int a;\n")
        lines = after.splitlines()
        self.assertEqual(lines[-1], "    int a;")
        self.assertTrue(all(line.startswith("    // ") and len(line) <= 100 for line in lines[:-1]))
        self.assertEqual(" ".join(line[7:] for line in lines[:-1]), f"{self.WIDE}and more.")

    def test_a_comment_behind_code(self):
        after = self.wrap("a.h", f"    int a; // {self.WIDE.strip()}\n")
        self.assertEqual(after.splitlines()[-1], "    int a;")
        self.assertTrue(all(len(line) <= 100 for line in after.splitlines()))

    def test_a_comment_above_one_behind_code(self):
        """The two comments stay separate, even if the declaration has a line break."""
        for code in ("    int a;", "    int\n        a;"):
            after = self.wrap("a.h", f"    // Of all.\n{code} // {self.WIDE.strip()}\n")
            self.assertTrue(after.startswith("    // Of all.\n\n    // a sentence"), after)
            self.assertEqual(after.splitlines()[-1], "    int a;")

    def test_a_paragraph(self):
        after = self.wrap("a.md", f"- {self.WIDE}\n\n| {self.WIDE} |\n")
        item, _, row = after.partition("\n\n")
        self.assertTrue(all(line.startswith("  ") for line in item.splitlines()[1:]))
        self.assertTrue(all(len(line) <= 100 for line in item.splitlines()))
        self.assertEqual(row, f"| {self.WIDE} |\n")

    def test_a_docstring(self):
        """The closing quotes stay after the last word, or on their own line."""
        wide = self.WIDE.strip()
        for quotes in ('"""', '\n    """'):
            code = f'def a():\n    """{wide}.\n\n    {wide}{quotes}\n    return """{wide}"""\n'
            after = self.wrap("a.py", code)
            lines = after.splitlines()
            self.assertTrue(all(len(line) <= 100 for line in lines[:-1]), after)
            self.assertTrue(all(line.startswith("    ") for line in lines[1:] if line), after)
            self.assertEqual(after.split(), code.split())
            self.assertEqual(f"{quotes}\n    return" in after, True, after)

    def test_a_comment_behind_python(self):
        """The comment moves above the code, also in a script without an ending. A string with # is
        not a comment."""
        code = f'a = "# {self.WIDE}"\nif a:\n    b = 1  # {self.WIDE.strip()}\n'
        for name, first in (("a.py", ""), ("a", "#!/usr/bin/env python3\n")):
            lines = self.wrap(name, first + code).splitlines()
            self.assertEqual(lines[-1], "    b = 1")
            self.assertTrue(lines[-2].startswith("    # "))
            self.assertIn(f'a = "# {self.WIDE}"', lines)

    def test_what_is_laid_out(self):
        drawing = f"//   {self.WIDE}\n// a ─▶ {self.WIDE}\n// name    {self.WIDE}\n"
        string = f'char a[] = "// {self.WIDE}";\n'
        block = f"```\n{self.WIDE}\n```\n## {self.WIDE}\n"
        made = f"# A\n\nMade from a table.\n\n{self.WIDE}\n"
        for name, text in (("a.c", drawing), ("b.c", string), ("a.md", block), ("b.md", made)):
            self.assertEqual(self.wrap(name, text), text)


if __name__ == "__main__":
    unittest.main()
