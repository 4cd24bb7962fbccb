"""Runs the tests of a suite in several labs at once, each in its own process. This saves time
because tests mostly wait.

When a lab has finished a test, it takes the next one. If a lab's process dies, its test has failed,
and the other labs continue.
"""

import inspect
import io
import multiprocessing
import multiprocessing.connection
import sys
import time
import unittest

from lab import die_with_us


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def _line(test):
    return inspect.unwrap(getattr(test, test._testMethodName)).__code__.co_firstlineno


def _run(name):
    said = io.StringIO()
    result = unittest.TextTestRunner(said, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromName(name))
    skipped = result.skipped[0][1] if result.skipped else None
    return result.wasSuccessful(), skipped, said.getvalue()


def _work(open_lab, pipe):
    die_with_us()
    with open_lab():
        pipe.send(None)
        for name in iter(pipe.recv, None):
            began = time.monotonic()
            outcome = _run(name)
            sys.stdout.flush()
            pipe.send((name, time.monotonic() - began, *outcome))


def run(module, open_lab, labs, only=()):
    """Runs the tests of the module with this name, each in the context `open_lab()`. Returns the
    exit code: 0 if all have passed. `only` names the tests to run; without it, all run. They run in
    the order of the source, which has slow tests first, so that all labs end at about the same
    time."""
    loader = unittest.defaultTestLoader
    waiting = tests_of(loader.loadTestsFromNames([f"{module}.{name}" for name in only]) if only else loader.loadTestsFromName(module))
    waiting = [test.id() for test in sorted(waiting, key=_line)]
    total, began, failed, skipped = len(waiting), time.monotonic(), [], 0
    forks = multiprocessing.get_context("fork")
    working = {}  # a lab's pipe → its process and its test
    for _ in range(min(labs, total)):
        ours, its = forks.Pipe()
        process = forks.Process(target=_work, args=(open_lab, its))
        process.start()
        its.close()
        working[ours] = [process, None]
    while working:
        for pipe in multiprocessing.connection.wait(list(working)):
            process, running = working[pipe]
            try:
                done = pipe.recv()
            except EOFError:  # the lab's process has ended
                process.join()
                del working[pipe]
                if running or process.exitcode:
                    failed.append(running or "a lab")
                    print(f"FAILED {running}: its process has ended with {process.exitcode}", flush=True)
                continue
            if done:
                name, seconds, passed, why_skipped, said = done
                skipped += why_skipped is not None
                failed += [] if passed else [name]
                print(f"{'ok' if passed else 'FAILED'} {seconds:.1f} s {name.rsplit('.', 1)[1]}{f' (skipped: {why_skipped})' if why_skipped else ''}", flush=True)
                print("" if passed else said, end="", flush=True)
            working[pipe][1] = waiting.pop(0) if waiting else None
            pipe.send(working[pipe][1])
    failed += waiting
    print(f"{total - len(failed) - skipped} passed, {skipped} skipped, {len(failed)} failed in {time.monotonic() - began:.1f} s: {' '.join(failed)}", flush=True)
    return 1 if failed or not total else 0
