"""Starts processes on the nodes of a job, which evaluate functions of a program. In the examples,
it replaces Dragon's own multiprocessing.

    with Processes([Place("n1"), Place("n2")]) as processes:
        print(processes.map(square, range(100)))

The nodes are those of SONDE_NODELIST. A process on another node is started with srun in a Slurm
job, else with ssh. This file, the program and Python must have the same paths there.

    program ──standard input──▶  environment, then (number, function, arguments) …
            ◀─standard output──  (number, result or exception) …

Messages are pickled. The output of a function goes to standard error. A process ends at the end of
its standard input, so it also ends if the program is killed.
"""

import importlib.util
import itertools
import multiprocessing
import os
import pickle
import queue
import shlex
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future

FLAG = "flag"  # a message that is not a call: the process sets its flag


def nodes():
    """Returns the job's nodes, this one first."""
    return os.environ.get("SONDE_NODELIST", socket.gethostname()).split(",")


class Place:
    """A node, and additional variables for the environment of a process there."""

    def __init__(self, host, environment=None):
        self.host, self.environment = host, environment or {}


def _command(host):
    """Returns the command that starts serve() on a host."""
    here = [sys.executable, "-u", os.path.abspath(__file__)]
    if host == nodes()[0]:
        return here
    if "SLURM_JOB_ID" in os.environ:
        return ["srun", "--overlap", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--mpi=none", "--unbuffered", "--quiet", f"--nodelist={host}", *here]
    return ["ssh", "-T", "-x", "-a", "-oBatchMode=yes", "-oConnectTimeout=8", host, shlex.join(here)]


class _Process:
    """A process, and its pending calls."""

    def __init__(self, place):
        self._calls = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._gone = None
        self._process = subprocess.Popen(_command(place.host), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.host = place.host
        environment = {name: value for name, value in os.environ.items() if name.startswith(("SONDE_", "PYTHON", "OMP_", "OPENBLAS_"))}
        main = getattr(sys.modules["__main__"], "__file__", None)
        self._send((environment | place.environment, sys.path, main and os.path.abspath(main)))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _send(self, what):
        try:
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()
        except OSError:
            pass  # the process has ended; the reader notices that, too

    def call(self, function, *arguments):
        future = Future()
        with self._lock:
            if self._gone:
                raise RuntimeError(self._gone)
            number = next(self._numbers)
            self._calls[number] = future
            self._send((number, function, arguments))
        return future

    def set_flag(self):
        with self._lock:
            self._send(FLAG)

    def _read(self):
        try:
            while True:
                number, good, result = pickle.load(self._process.stdout)
                future = self._calls.pop(number)
                future.set_result(result) if good else future.set_exception(result)
        except Exception:
            pass  # the end of the output, or unreadable output
        with self._lock:
            self._gone = f"the process on {self.host} has ended (exit code {self._process.wait()})"
        for future in self._calls.values():
            future.set_exception(RuntimeError(self._gone))

    def close(self):
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._reader.join()
        self._process.stdout.close()


class Processes:
    """One process for each of `places`."""

    def __init__(self, places):
        self.processes = [_Process(place) for place in places]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.close()

    def each(self, function, *arguments):
        """Calls the function in all processes at the same time. Returns the results in the order of
        the processes."""
        return [future.result() for future in [process.call(function, *arguments) for process in self.processes]]

    def map(self, function, items, done=lambda item, result: None):
        """Returns the results in the order of the items; each free process takes the next item.
        `done` is called in this process for each result."""
        items, results, finished = list(items), {}, queue.Queue()
        waiting = iter(range(len(items)))

        def give(process):
            index = next(waiting, None)
            if index is not None:
                process.call(function, items[index]).add_done_callback(lambda future: finished.put((process, index, future)))

        for process in self.processes:
            give(process)
        while len(results) < len(items):
            process, index, future = finished.get()
            results[index] = future.result()
            give(process)
            done(items[index], results[index])
        return [results[i] for i in range(len(items))]

    def set_flag(self):
        """Sets the event of flag() in every process."""
        for process in self.processes:
            process.set_flag()


_flag = None


def flag():
    """Returns this process' event, which its forked children share. set_flag() sets it."""
    global _flag
    if _flag is None:
        _flag = multiprocessing.get_context("fork").Event()
    return _flag


def _load(path):
    """Loads the program without running it, under the module name that its pickled functions
    have."""
    spec = importlib.util.spec_from_file_location("__mp_main__", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    spec.loader.exec_module(module)


def serve():
    said, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    environment, path, main = pickle.load(said)
    os.environ.update(environment)
    sys.path[:] = path
    sys.modules["on_nodes"] = sys.modules["__main__"]
    if main:
        _load(main)
    calls = queue.Queue()

    def listen():
        while True:
            try:
                what = pickle.load(said)
            except (EOFError, OSError):
                os._exit(0)
            flag().set() if what == FLAG else calls.put(what)

    flag()
    threading.Thread(target=listen, daemon=True).start()
    while True:
        number, function, arguments = calls.get()
        try:
            answer = number, True, function(*arguments)
        except Exception as error:
            answer = number, False, error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
