"""A separate environment for each test: folders, port, variables; the built command; the processes
that run in it."""

import hmac
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from waiting import PATIENCE_S, continue_process, has_ended, stop_process, until  # noqa: E402, F401

SONDE = os.environ["SONDE"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def server_proof(path, address, tokens):
    """Returns the proof of a server that knows the tokens, as in src/http/server_proof.h. `address`
    is the server's end of the connection."""
    text = f"sonde server proof\n{path.partition('nonce=')[2]}{address}".encode()
    return "\n".join([address, *(hmac.new(token.encode(), text, "sha256").hexdigest() for token in tokens), ""]).encode()


class Place(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        # A short path, because the path of a socket has to fit.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="sc-", dir="/tmp"))
        self.tmp = self.root / "tmp"
        self.runs = self.root / "runs"
        self.tmp.mkdir()
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("SONDE", "SLURM", "PBS", "DRAGON", "XDG_CONFIG_HOME"))}
        self.env = keep | {
            "TMPDIR": str(self.tmp), "SONDE_RUNS": str(self.runs), "HOME": str(self.root), "SONDE_SYSTEM_CONFIG": "", "SONDE_PORT": str(free_port()),
            "PATH": os.path.dirname(SONDE) + ":" + os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONFAULTHANDLER": "1",
            "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(self.root / "mpl")),
        }
        self.started = []
        self.addTypeEqualityFunc(list, self.assert_lists_equal)

    def assert_lists_equal(self, first, second, msg=None):
        """For long lists, shows only the first difference: finding all of them takes minutes."""
        if max(len(first), len(second)) <= 100:
            self.assertListEqual(first, second, msg)
        elif first != second:
            at = next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
            self.fail(self._formatMessage(msg, f"lists of {len(first)} and {len(second)} differ from [{at}] on: {first[at:at + 5]}, {second[at:at + 5]}"))

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        until(lambda: not self.alive(), f"all processes of {self.root} gone: {self.alive()}")
        shutil.rmtree(self.root)

    def sonde(self, *arguments, env=None, stdin=None, **more):
        """Runs the command to its end."""
        process = subprocess.Popen([SONDE, *map(str, arguments)], env=self.env | (env or {}), stdin=subprocess.PIPE if stdin is not None else None,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.root, **more)
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.end_all(process)
            out, err = process.communicate(timeout=PATIENCE_S)
            raise AssertionError(f"sonde {' '.join(map(str, arguments))} does not end: {out}\n{err}") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def end_all(self, process):
        """Ends a hanging process and all processes that it has started, which may hold its output
        open; prints the stack of each."""
        for pid, text in self.alive().items():
            where = []
            for name in ("wchan", "syscall"):
                try:
                    where.append(pathlib.Path(f"/proc/{pid}/{name}").read_text().strip())
                except OSError:
                    pass
            print(f"# hangs: {pid} {text[:200]}: {', '.join(where)}", file=sys.stderr, flush=True)
        number = signal.SIGABRT  # Python then prints its stack (PYTHONFAULTHANDLER)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and (process.poll() is None or self.alive()):
            for pid in {process.pid, *self.alive()}:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            number = signal.SIGKILL
            time.sleep(0.1)

    def start(self, *arguments, env=None, **more):
        process = subprocess.Popen([SONDE, *map(str, arguments)], env=self.env | (env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.root, **more)
        self.started.append(process)
        return process

    def descriptor_room(self, pid):
        """Returns how many descriptors a process can have before Linux enlarges its table."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"^FDSize:\s+(\d+)$", status, re.M)[1])

    def ends(self, process):
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, err

    def alive(self, word=None):
        """Returns the processes (pid → command line) that have our folder in their arguments or
        environment."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
                environment = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
                state = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and str(self.root).encode() in command + environment:
                text = command.replace(b"\0", b" ").decode(errors="replace").strip()
                if word is None or word in text:
                    found[int(entry)] = text
        return found

    def job(self):
        """Returns the only running job, once it has a URL."""
        return until(lambda: next((j for j in json.loads(self.sonde("status", "--json").stdout) if j["url"]), None), "a job with a URL")

    def agent(self):
        return until(lambda: next(iter(self.alive("agent --folder")), None), "an agent")

    def recordings(self):
        return sorted(p.name for p in self.runs.iterdir() if p.name[0] != ".") if self.runs.exists() else []

    def names(self, *where):
        """Returns metric → number of points in a recording."""
        listed = self.sonde("query", "--list", "--json", *where)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        names = {}
        for series in json.loads(listed.stdout):
            names[series["metric"]] = names.get(series["metric"], 0) + series["points"]
        return names

    def nothing_left_in(self, folder):
        """Asserts that only the user's base folder for runs is left, which stays so that no other
        user can make it."""
        base = folder / f"sonde-{os.getuid()}"
        self.assertEqual([*folder.iterdir()], [base] if base.exists() else [])
        if base.exists():
            self.assertEqual((list(base.iterdir()), base.stat().st_mode & 0o777), ([], 0o700))

    def nothing_left(self):
        self.nothing_left_in(self.tmp)
        self.assertEqual(self.alive(), {})

    def one_line(self, result, code, *words):
        """Asserts that the command prints one line on stderr, nothing on stdout, and exits with
        this code."""
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)


def signal_process(pid, number):
    os.kill(pid, number)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
