"""Recordings, servers and requests for the conformance tests.

The environment names the programs: SONDE_MAKE_STORE and SONDE_SERVE (tests/conformance/meson.build
sets them).
"""
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import quote, urlencode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
from waiting import PATIENCE_S, continue_process, stop_process, until  # noqa: E402, F401

T = 1356998400
END = 1357041600
NS = 1_000_000_000
TOKEN = "conformance-token"


def strict_json(text):
    """Parses JSON like a strict client: NaN and repeated keys are errors."""
    def no_constant(name):
        raise ValueError(f"{name} is not JSON")

    def no_twice(pairs):
        keys = [key for key, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError("an object repeats a key")
        return dict(pairs)
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twice)


class Writer:
    """A recording that stays open for writing until close()."""

    def __init__(self, path, job="test", host="node1"):
        self.path = path
        self.process = subprocess.Popen([os.environ["SONDE_MAKE_STORE"], path, job, host], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _say(self, line):
        self.process.stdin.write(line + "\n")

    @staticmethod
    def _tags(tags):
        return ",".join(f"{k}={v}" for k, v in tags.items()) or "-"

    def points(self, metric, tags, points):
        """Writes points, a list of (seconds since the epoch, value)."""
        for t, value in points:
            self._say(f"point {metric} {self._tags(tags)} {round(t * 1000) * 1_000_000} {value!r}")

    def metric(self, name, kind, unit, help):
        self._say(f"metric {name} {kind} {unit or '-'} {help}")

    def annotation(self, t, tags, text):
        self._say(f"annotation {t * NS} {self._tags(tags)} {text}")

    def span(self, id, parent, start, end, tags, name):
        self._say(f"span {id} {parent} {round(start * NS)} {'-' if end is None else round(end * NS)} {self._tags(tags)} {name}")

    def seal(self):
        self._say("seal")

    def sync(self):
        self._say("sync")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ok\n":
            raise RuntimeError(f"make_store failed on {self.path}")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise RuntimeError(f"make_store failed on {self.path}")

    def crash(self):
        self._say("crash")
        self.close()


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()

    @property
    def json(self):
        return strict_json(self.raw)


class Server:
    def __init__(self, *arguments, token=TOKEN, user=None, stderr=None):
        """Starts the server, with `user` as a process of that uid. The program is passed as a
        descriptor, because another user may not be able to read the build folder."""
        options = [f"token={token}"] if token else []
        self.token = token
        program = os.open(os.environ["SONDE_SERVE"], os.O_RDONLY)
        other = {"user": user, "group": user, "extra_groups": [], "cwd": "/"} if user is not None else {}
        self.process = subprocess.Popen([f"/proc/self/fd/{program}", *options, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, pass_fds=[program], **other)
        os.close(program)
        self.line = self.process.stdout.readline().strip()
        self.port = int(self.line.split()[1]) if self.line.startswith("ready ") else None

    def request(self, method, target, body=None, headers=None, token=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        headers = dict(headers or {})
        if token and self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        try:
            connection.request(method, target, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, target, parameters=None, **more):
        if parameters:
            target += "?" + (parameters if isinstance(parameters, str) else urlencode(parameters, doseq=True, quote_via=quote))
        return self.request("GET", target, **more)

    def post(self, target, body, headers=None, **more):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        return self.request("POST", target, body, {"Content-Type": "application/json", **(headers or {})}, **more)

    def stop(self):
        self.process.stdout.close()  # ends the server
        return self.process.wait(timeout=PATIENCE_S)


class Job:
    """An agent with its HTTP server, as in a job."""

    def __init__(self, *arguments, level=1, env=None):
        # Under /tmp, because the length of a socket's path is limited.
        self.folder = tempfile.mkdtemp(prefix="sonde-job-", dir="/tmp")
        socket_path = f"{self.folder}/agent.sock"
        ready, theirs = socket.socketpair()
        with theirs:
            self.agent = subprocess.Popen([os.environ["SONDE"], "agent", "--folder", self.folder, "--host", "node1", "--telemetry-level", str(level),
                                           "--rate", "0.05", "--control-fd", str(theirs.fileno())], pass_fds=[theirs.fileno()], env={**os.environ, **(env or {})})
        self.control = ready
        words = ready.recv(1000)
        if not words.startswith(b"ready"):
            raise RuntimeError(f"the agent did not start: {words}")
        self.server = Server(f"agent={socket_path}", *arguments, self.folder)

    def kill_agent(self):
        self.agent.kill()
        self.agent.wait()

    def end_agent(self):
        """Ends the agent as at the end of a job, which closes the recording."""
        self.control.close()
        self.agent.wait(timeout=PATIENCE_S)

    def stop(self):
        status = self.server.stop()
        self.end_agent()
        shutil.rmtree(self.folder)
        if status != 0:
            raise RuntimeError(f"the server ended with {status}")


class Case(unittest.TestCase):
    """All tests of a class share a folder and a server. `write` fills the folder, `arguments` go
    to the server."""
    arguments = ()
    token = TOKEN

    @classmethod
    def write(cls, folder):
        pass

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="sonde-conformance-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.write(cls.folder)
        cls.server = Server(*cls.arguments, cls.folder, token=cls.token)
        cls.addClassCleanup(cls.stop_server)
        if cls.server.port is None:
            raise RuntimeError(cls.server.line)

    @classmethod
    def stop_server(cls):
        status = cls.server.stop()
        if status != 0:
            raise RuntimeError(f"the server ended with {status}")

    def query(self, m, start=T, end=END, **parameters):
        """Sends GET /api/query, checks that it succeeds, and returns its answer."""
        answer = self.server.get("/api/query", {"start": start, "end": end, "m": m, **parameters})
        self.assertEqual(answer.status, 200, answer.raw[:1000])
        return answer.json

    def assert_error(self, answer, status, message):
        self.assertEqual(answer.status, status, answer.raw[:1000])
        error = answer.json["error"]
        self.assertEqual(error["code"], status)
        self.assertIn(message, error["message"])
