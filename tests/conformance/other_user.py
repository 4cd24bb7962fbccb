"""Runs code as another user of the same machine: in a child process with another uid, which knows
only the server's address and stolen data."""
import json
import os
import subprocess
import sys

OTHER_UID = 65534

# Modules are imported before the change of user, because other users may not be able to read
# Python's folder. After the change, the process has to permit that others inspect it
# (PR_SET_DUMPABLE).
_BECOME = f"""
import ctypes, http.client, json, os, socket, sys, threading
"x".encode("idna")
os.setgroups([])
os.setresgid({OTHER_UID}, {OTHER_UID}, {OTHER_UID})
os.setresuid({OTHER_UID}, {OTHER_UID}, {OTHER_UID})
assert ctypes.CDLL(None).prctl(4, 1, 0, 0, 0) == 0  # PR_SET_DUMPABLE
os.chdir("/")
"""

_REQUEST = """
answers = []
for port, method, target, body, headers in json.load(sys.stdin):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, target, body, headers)
    answer = connection.getresponse()
    answers.append((answer.status, answer.read().decode()))
    connection.close()
json.dump(answers, sys.stdout)
"""

_HOLD = """
asked = json.loads(sys.stdin.readline())
held = []
for _ in range(asked["count"]):
    try:
        s = socket.create_connection(("127.0.0.1", asked["port"]), timeout=300)
        held.append(s)
        s.sendall(asked["bytes"].encode())
    except ConnectionError:
        pass  # ended already, for one that came later, or because it came too fast
print("held", flush=True)
sys.stdin.read()
"""


def may_become_other():
    """True if this process can change to another user: it is root, as in CI."""
    return os.geteuid() == 0


def start(code, *arguments, program=sys.executable):
    """Starts a Python program as the other user."""
    return subprocess.Popen([program, "-c", _BECOME + code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def requests(port, asked):
    """Sends requests as the other user. `asked` is a list of (method, target, body, headers); they
    are sent one after another, each on its own connection. Returns status and text of each
    answer."""
    out, _ = start(_REQUEST).communicate(json.dumps([(port, *a) for a in asked]), timeout=300)
    answers = json.loads(out)
    if len(answers) != len(asked):
        raise RuntimeError(f"{len(answers)} answers to {len(asked)} requests")
    return answers


def request(port, method, target, body=None, headers=None):
    (status, _), = requests(port, [(method, target, body, headers or {})])
    return status


class Holding:
    """Connections of the other user that have sent `data` and stay open."""

    def __init__(self, port, count, data):
        self.child = start(_HOLD)
        self.child.stdin.write(json.dumps({"port": port, "count": count, "bytes": data}) + "\n")
        self.child.stdin.flush()
        self.line = self.child.stdout.readline()

    def __enter__(self):
        if self.line != "held\n":
            raise RuntimeError("the other user could not connect")
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait(timeout=300)
        self.child.stdout.close()
