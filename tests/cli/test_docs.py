"""The documents name only existing folders, files, headings, commands, options, variables and
metrics. tests/conformance checks the routes, test_help.py checks cli.md."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "grafana/README.md", *(ROOT / "docs").glob("*.md")])
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()


def read(pattern):
    return {path: path.read_text(errors="replace") for path in sorted(ROOT.glob(pattern)) if path.is_file()}


def folders(parent):
    """The folders that are built."""
    return re.findall(r"^ *subdir\('([^']+)'\)", (ROOT / parent / "meson.build").read_text(), re.M)


COMMANDS = set(re.findall(r"^COMMAND\(\w+, ([a-z]+),", (ROOT / "src/cli/commands.def").read_text(), re.M))
# By name and by letter: true if the option takes a value.
OPTIONS = {"--help": False, "--version": False}
for name, letter, argument in re.findall(r"^OPTION\(\w+, \"([a-z0-9-]*)\", (0|'.'), \"([^\"]*)\"", (ROOT / "src/cli/options.def").read_text(), re.M):
    OPTIONS |= {f"--{name}": bool(argument), f"-{letter[1:2]}": bool(argument)}


def options_of(line):
    """The options of the first `sonde COMMAND` in a shell line; for `run` and `simulate` up to the
    beginning of the command."""
    call = re.search(r"(?:^|[\s(|;&])sonde ([a-z]+)\b([^|;&]*)", line)
    value = False
    for word in call[2].split() if call else []:
        name = word.partition("=")[0].rstrip(")")  # ignores the bracket of $(sonde …)
        if word == "--" or (not word.startswith("-") and not value and call[1] in ("run", "simulate")):
            return
        if word.startswith("-"):
            yield name
        value = word.startswith("-") and "=" not in word and OPTIONS.get(name, False)


def code(text):
    """The texts in backticks and blocks."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text, re.M | re.S):
        yield block
    for piece in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        yield piece


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower().replace("`", "")).replace(" ", "-")


class Architecture(unittest.TestCase):
    def test_every_folder_has_a_row(self):
        named = set(re.findall(r"`([a-z_/]+?)/?(?:/X)?`", ARCHITECTURE))
        for folder in folders(".") + [f"tests/{name}" for name in folders("tests")]:
            parent = folder.rpartition("/")[0]
            self.assertTrue(folder in named or ("/" in parent and parent in named) or folder == "tests", f"docs/architecture.md does not name {folder}")

    def test_what_it_names_is_there(self):
        for name in set(re.findall(r"`((?:src|tests|bindings|bench|include|docs|tools|grafana|examples|\.ci)/[^`]*)`", ARCHITECTURE)):
            self.assertTrue((ROOT / name.removesuffix("/X")).exists(), f"docs/architecture.md names {name}")
        for name in set(re.findall(r"`([a-z_]+\.(?:h|c|def))`", ARCHITECTURE)):
            self.assertTrue(list(ROOT.glob(f"src/**/{name}")) + list(ROOT.glob(f"include/{name}")), f"docs/architecture.md names {name}")

    def test_a_contract_lies_in_its_folder(self):
        for folder, contract in re.findall(r"^\| `([^`]+)` \| [^|]* \| ([^|]*) \|$", ARCHITECTURE, re.M):
            for name in re.findall(r"`([^`]+\.(?:h|def|py))`", contract):
                there = [path for path in (ROOT / folder / name, ROOT / "include" / name) if path.exists()]
                self.assertTrue(there, f"docs/architecture.md: {name} is not in {folder}")


class Names(unittest.TestCase):
    def test_links(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, heading = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                self.assertTrue(path.exists(), f"{page.name}: {target} is not there")
                if heading:
                    headings = {anchor(line) for line in re.findall(r"^#+ (.*)$", path.read_text(), re.M)}
                    self.assertIn(heading, headings, f"{page.name}: {target} has no such heading")

    def test_commands(self):
        for page in PAGES:
            for piece in code(page.read_text()):
                for word in re.findall(r"(?:^|[\s(|;&])sonde ([a-z]+)\b", piece):
                    self.assertIn(word, COMMANDS, f"{page.name}: there is no `sonde {word}`")

    def test_options(self):
        """Options in lines that call sonde; and options that stand alone, which may also be an
        example's."""
        alone_may = set(OPTIONS) | set(re.findall(r"\"(--[a-z-]+)\"", "".join(read("examples/**/*.py").values())))
        wrong = []
        for page in PAGES:
            for piece in code(page.read_text()):
                for line in piece.replace("\\\n", " ").splitlines():
                    wrong += [f"{page.name}: {name} in: {line}" for name in options_of(line) if name not in OPTIONS]
                alone = re.fullmatch(r"(--[a-z][a-z-]+)(?:[= ].*)?", piece)
                if alone and alone[1] not in alone_may:
                    wrong.append(f"{page.name}: {alone[1]}")
        self.assertEqual(wrong, [])

    def test_variables(self):
        """In both directions: the named variables exist, and variables that programs and people may
        set are named."""
        sources = ["src/*/*.[ch]", "src/cli/options.def", "bindings/python/**/*.py", "bindings/python/*.c", "bindings/rust/*.rs", "bench/**/*.[ch]", "bench/**/*.py", "examples/*", "tools/*", "grafana/**/*.y*ml"]
        sources = "\n".join(text for pattern in sources for text in read(pattern).values())
        docs = "\n".join([page.read_text() for page in PAGES] + re.findall(r"//.*", "\n".join(read("include/*").values())))
        ours = "\n".join(text for pattern in ("src/*/*.c", "bindings/python/**/*.py") for text in read(pattern).values())
        known = set(re.findall(r"\bSONDE_[A-Z_]+[A-Z]\b", sources))
        named = set(re.findall(r"\bSONDE_[A-Z_]+[A-Z]\b", docs))
        asked = {a or b for a, b in re.findall(r"getenv\(\"(SONDE_[A-Z_]+)\"\)|environ(?:\.get\(|\[)\"(SONDE_[A-Z_]+)\"", ours)}
        self.assertEqual(named - known, set(), "the documents name what nobody knows")
        # the agent sets this one itself
        self.assertEqual(asked - named - {"SONDE_PROBE_DEVICE"}, set(), "no document names what is read")


class Metrics(unittest.TestCase):
    def test_built_in_names(self):
        """A name that begins like a built-in metric is a built-in metric or an alias."""
        page = (ROOT / "docs/metrics.md").read_text()
        known = set(re.findall(r"`([a-z][a-z0-9_]*)`", page)) | OTHERS
        prefixes = {name.split("_")[0] for name in re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.M) if "_" in name}
        unit = re.compile(r"_(bytes|total|percent|watts|seconds|celsius|hertz|ratio|joules)$")
        wrong = []
        for path in PAGES:
            for piece in code(path.read_text()):
                names = re.findall(r"(?<![\w./$-])([a-z]+_[a-z0-9_]*[a-z0-9])(?![\w(./*-])", piece)
                wrong += [f"{path.name}: {name}" for name in names if name.split("_")[0] in prefixes and unit.search(name) and name not in known]
        self.assertEqual(wrong, [])


# Output of `sonde probe`, and keys of answers.
OTHERS = {"probe_compute_seconds", "probe_memory_seconds", "memory_bytes", "own_memory_bytes"}

if __name__ == "__main__":
    unittest.main()
