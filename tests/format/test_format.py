"""Compares the pages about the format with sonde's files: the reader that was written from these
pages returns every point with the same bits.

SONDE is the built program, SONDE_LIBRARY the shared library that emitter.py uses, HELLO the program
of examples/hello.c.
"""
import csv
import datetime
import io
import os
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from read_sonde import KIND_CATALOG, KIND_NONE, MISSING, Damage, Recording, to_bits, to_double

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))
from waiting import PATIENCE_S, until  # noqa: E402

SONDE, LIBRARY = os.environ["SONDE"], os.environ["SONDE_LIBRARY"]
EMITTER = [sys.executable, str(HERE / "emitter.py"), LIBRARY]
START = 1795000000000000000


def sonde(*arguments, **more):
    return subprocess.run([SONDE, *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE_S, **more).stdout


def emitted(lines):
    """Returns the expected contents of a file after these lines of the emitter, as {name: {time_ns:
    bits}}. No time stamp of a series repeats."""
    points = {}
    for line in lines:
        what, *words = line.split()
        if what == "point":
            points.setdefault(words[0], {})[int(words[1])] = int(words[2], 16)
        elif what == "row":
            for word in words[1:]:
                name, bits = word.split("=")
                if int(bits, 16) != MISSING:
                    points.setdefault(name, {})[int(words[0])] = int(bits, 16)
    return points


def held(recording):
    """Returns the contents of a recording in the same form, by the names of metrics, without empty
    series."""
    return {recording.metrics[metric]["name"]: points for (metric, _), points in zip(recording.series, recording.points) if points}


def read_queried(path, name):
    """Returns {time_ns: value} from `sonde query`."""
    rows = list(csv.DictReader(io.StringIO(sonde("query", "--csv", f"none:{name}", path))))
    answer = {}
    for row in rows:
        second, _, fraction = row["time"].rstrip("Z").partition(".")
        at = datetime.datetime.fromisoformat(second + "+00:00")
        answer[int(at.timestamp()) * 10**9 + int(fraction.ljust(9, "0") or 0)] = float(row["value"] or "nan")
    return answer


class Columns:
    """Makes the cells of a wide CSV, with a column of each usual kind, and the expected values."""

    def __init__(self, seed):
        self.random, self.total, self.speed, self.height = random.Random(seed), 0, 0, 0.0

    def plateau(self, i):
        if i == 0 or self.random.random() < 0.01:
            self.height = self.random.random()
        return self.height

    def cells(self, i):
        r = self.random
        busy = r.randrange(10**7)
        self.total += 5 * 10**6 + r.randrange(1000)
        self.speed += r.randrange(-2, 3)
        return {
            "constant": 7,
            "steps": i // 1000,
            "small": r.randrange(-50, 50),
            "large": r.randrange(-2**40, 2**40),
            "counter": self.total,
            "busy": busy,
            "idle": 10**7 - busy,
            "smooth": i * i // 64 + self.speed,
            "bytes": 4096 * r.randrange(10**6),
            "percent": f"{r.gauss(50, 9):.2f}",
            "millis": f"{i * 0.001 + r.randrange(9) * 0.001:.3f}",
            "tiny": f"{r.randrange(-10**6, 10**6)}e-9",
            "halves": i / 1024 + r.randrange(64) / 4096,
            "plateaus": self.plateau(i),
            "random": repr(r.random()),
            "wide": repr(struct.unpack("<d", struct.pack("<Q", r.randrange(2**52, 0x7FEFFFFFFFFFFFFF)))[0]),
            "special": r.choice(["nan", "inf", "-inf", "-0", "0", "1", "5e-324"]),
            "rare_special": "inf" if i % 700 == 5 else "-0" if i % 700 == 6 else "nan" if i % 700 == 7 else r.randrange(1000),
            "sparse": r.random() if i % 500 == 3 else "",
            "gaps": "" if r.random() < 0.3 else f"{i * 0.1:.1f}",
            "late": 0 if i < 8192 else r.randrange(3),
            "never": "",
        }


class FormatTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sonde-format-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def assert_same(self, found, wanted):
        """Compares two dictionaries {name: {time_ns: bits}}."""
        self.assertEqual(set(found), set(wanted))
        for name, points in wanted.items():
            if found[name] != points:
                wrong = sorted(t for t in points.keys() | found[name].keys() if points.get(t) != found[name].get(t))
                self.fail(f"{name}: {len(wrong)} points differ, the first at {wrong[0]}:"
                          f" {found[name].get(wrong[0])} instead of {points.get(wrong[0])}")

    def assert_as_queried(self, path, recording, names):
        for name in names:
            answer = read_queried(path, name)
            self.assertEqual({t: repr(v) for t, v in answer.items()},
                             {t: repr(to_double(bits)) for t, bits in held(recording)[name].items()}, name)

    def make_import(self, rows, jitter_ns):
        columns, wanted, t = Columns(rows), {}, START
        with open(self.path("t.csv"), "w", newline="") as file:
            out = csv.writer(file)
            for i in range(rows):
                cells = columns.cells(i)
                if i == 0:
                    out.writerow(["time_ns", *cells])
                t += 10**9 + (columns.random.randrange(-jitter_ns, jitter_ns) if jitter_ns else 0)
                out.writerow([t, *cells.values()])
                for name, cell in cells.items():
                    if cell != "":
                        wanted.setdefault(name, {})[t] = to_bits(float(cell))
        sonde("import", self.path("t.csv"), "-o", self.path("out"), "--host", "node")
        path = self.path("out", "node.sonde")
        recording = Recording(path)
        self.assertEqual(recording.problems, [])
        self.assert_same(held(recording), wanted)
        self.assert_as_queried(path, recording, wanted)
        return path, recording

    def run_emitter(self, lines, *options):
        """Starts the emitter under `sonde run`, with these lines."""
        os.makedirs(self.path("jobs"), exist_ok=True)
        process = subprocess.Popen([SONDE, "run", "-q", "-l", "1", "--record", self.path("out"), "--run-dir", self.path("jobs"), *options,
                                    "--", *EMITTER], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        process.stdin.write("".join(line + "\n" for line in lines))
        process.stdin.flush()
        return process

    def finish(self, process):
        _, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, said)
        return self.recorded(self.path("out"))

    @staticmethod
    def recorded(folder):
        """Returns the path of the recording in the folder, or None until its header is written."""
        for where, _, names in os.walk(folder):
            for name in names:
                if name.endswith(".sonde"):
                    with open(os.path.join(where, name), "rb") as file:
                        return file.name if file.read(5) == b"sonde" else None
        return None


def made_lines(count, seed):
    """Makes lines for the emitter: points of some series, rows of a set with gaps, spans and
    annotations. Some values are NaN with payloads, which CSV cannot express."""
    r = random.Random(seed)
    lines = []
    for i in range(count):
        t = START + i * 10**6 + r.randrange(1000)
        lines.append(f"point noise{r.randrange(3)} {t} {to_bits(r.random()):x}")
        lines.append(f"point third {t} {to_bits(float(i // 3)):x}")
        if i % 50 == 0:
            lines.append(f"point few{i % 7} {t} {r.choice([0x7FF0, 0xFFF0, 0x7FF8, 0xFFFF, 0x8000, 0]) << 48 | (i if i % 4 else 0):x}")
        middle = to_bits(-0.0) if i % 3 else MISSING
        lines.append(f"row {t} left={to_bits(i * 0.25):x} middle={middle:x} right={r.randrange(2**62):x}")
        if i % 100 == 0:
            lines.append(f"span {t} {t + 500} step n={i} k=v")
            lines.append(f"note hello{i} a=b")
    return lines


class Imports(FormatTest):
    def test_a_few_rows_are_a_hot_block(self):
        for rows in (1, 7, 60):
            with self.subTest(rows=rows):
                _, recording = self.make_import(rows, 1000)
                self.assertEqual({b.flags & 1 for b in recording.blocks}, {0})
                shutil.rmtree(self.path("out"))

    def test_many_rows_are_cold_blocks(self):
        for jitter_ns in (0, 1, 10**6):
            with self.subTest(jitter_ns=jitter_ns):
                path, recording = self.make_import(9000, jitter_ns)
                self.assertIn(1, {b.flags & 1 for b in recording.blocks})
                self.assertGreater(len(recording.blocks), 1)
                self.assertEqual(recording.about["host"], "node")
                shutil.rmtree(self.path("out"))

    def test_the_reader_as_a_command(self):
        path, recording = self.make_import(60, 1000)
        reader = [sys.executable, os.path.join(HERE, "read_sonde.py")]
        said = subprocess.run([*reader, path], check=True, capture_output=True, text=True).stdout
        self.assertIn("small{host=node} 60\n", said)
        rows = list(csv.DictReader(io.StringIO(subprocess.run([*reader, "--csv", path], check=True, capture_output=True, text=True).stdout)))
        found = {}
        for row in rows:
            found.setdefault(row["series"].removesuffix("{host=node}"), {})[int(row["time_ns"])] = to_bits(float(row["value"]))
        self.assert_same(found, held(recording))
        with open(path, "r+b") as file:
            file.seek(-20, os.SEEK_END)
            byte = file.read(1)
            file.seek(-20, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        self.assertEqual(subprocess.run([*reader, path], capture_output=True).returncode, 1)


class Runs(FormatTest):
    def check_run(self, count, cold):
        lines = made_lines(count, count)
        path = self.finish(self.run_emitter(lines))
        recording = Recording(path)
        self.assertEqual(recording.problems, [])
        wanted = emitted(lines)
        self.assert_same(held(recording), wanted)
        self.assert_as_queried(path, recording, wanted)
        self.assertEqual({b.owner[0] for b in recording.blocks}, {1, 2, 3})
        self.assertEqual({b.owner[0] for b in recording.blocks if b.flags & 1}, cold)
        spans = [(e.start, e.end, e.text, dict(e.labels)) for e in recording.last_events() if e.kind == "span"]
        host = recording.about["host"]
        self.assertEqual(sorted(s[:3] for s in spans), sorted((int(a), int(b), text) for a, b, text in
                                                             (line.split()[1:4] for line in lines if line.startswith("span"))))
        self.assertEqual(spans[0][3], {"host": host, "n": "0", "k": "v"})
        notes = [e for e in recording.last_events() if e.kind == "annotation"]
        self.assertEqual([e.text for e in notes], [f"hello{i}" for i in range(0, count, 100)])
        self.assertTrue(all(e.start == e.end and dict(e.labels) == {"host": host, "a": "b"} for e in notes))

    def test_a_short_run(self):
        self.check_run(120, set())

    def test_a_run_with_cold_blocks_of_sets(self):
        self.check_run(9000, {1})

    def test_a_run_with_cold_blocks_of_points(self):
        self.check_run(35000, {1, 2})

    def test_long_series_one_after_the_other(self):
        r = random.Random(6)
        lines = [f"point noise{series} {START + i * 10**6} {to_bits(round(r.random(), 3)):x}" for series in range(10) for i in range(40000)]
        recording = Recording(self.finish(self.run_emitter(lines)))
        self.assertEqual(recording.problems, [])
        self.assertIn(8, {b.flags & 8 for b in recording.blocks})
        self.assert_same(held(recording), emitted(lines))

    def test_a_point_of_each_series(self):
        r = random.Random(9)
        for span_ns in (1, 200, 10**9, 2**48):
            with self.subTest(span_ns=span_ns):
                lines = [f"point one{series} {START + r.randrange(span_ns)} {to_bits(r.random()):x}" for series in range(700)]
                path = self.finish(self.run_emitter(lines))
                recording = Recording(path)
                self.assertEqual(recording.problems, [])
                self.assertIn(32, {b.flags for b in recording.blocks})
                self.assert_same(held(recording), emitted(lines))
                self.assert_as_queried(path, recording, ["one0", "one255", "one256", "one699"])
                shutil.rmtree(self.path("out"))

    def test_points_that_come_out_of_order(self):
        lines = made_lines(3000, 1)
        random.Random(2).shuffle(lines)
        path = self.finish(self.run_emitter(lines))
        recording = Recording(path)
        self.assertEqual(recording.problems, [])
        self.assert_same(held(recording), emitted(lines))

    def test_of_equal_points_the_last_wins(self):
        lines = [f"row {START} aa=1 bb=2 x=9", f"row {START} bb=3 cc=4 x=8 y=1", f"row {START} bb=5 dd=6 x=7 y=2 z=3",
                 f"row {START} aa=7 bb=8 x=6", f"point x {START} a", f"point last {START} b", f"point last {START} c"]
        wanted = {"aa": 7, "bb": 8, "cc": 4, "dd": 6, "x": 0xA, "y": 2, "z": 3, "last": 0xC}
        ready = self.path("ready")
        process = self.run_emitter([*lines, f"wait {ready}"])
        until(lambda: os.path.exists(ready), "the emitter is ready")
        live = self.recorded(self.path("jobs"))
        until(lambda: held(Recording(live)).get("last") == {START: 0xC}, "the points are in the file")
        for path in (live, None):
            if path is None:
                os.unlink(ready)
                path = self.finish(process)
            recording = Recording(path)
            self.assert_same(held(recording), {name: {START: bits} for name, bits in wanted.items()})
            self.assert_as_queried(path, recording, wanted)

    def test_what_a_hello_holds(self):
        values = [1 / step for step in range(1, 21)]
        lines = [*(f"point loss {START + i} {to_bits(v):x}" for i, v in enumerate(values)), "note done"]
        by_line = Recording(self.finish(self.run_emitter(lines)))
        shutil.rmtree(self.path("out"))
        hello = subprocess.run([SONDE, "run", "-q", "-l", "1", "--record", self.path("out"), os.environ["HELLO"]], timeout=PATIENCE_S)
        self.assertEqual(hello.returncode, 0)
        recording = Recording(self.recorded(self.path("out")))
        self.assertEqual(recording.problems, [])
        for found in (by_line, recording):
            self.assertEqual([e.text for e in found.events], ["done"])
            points = held(found)["loss"]
            self.assertEqual([to_double(points[t]) for t in sorted(points)], values)

    def test_a_full_file_and_a_catalog_of_several_segments(self):
        lines, ready = made_lines(30000, 8), self.path("ready")
        lines += [f"point {'many' * 9}{i} {START + i} {i:x}" for i in range(600)]
        process = self.run_emitter([], "--size-limit", "1M")
        process.stdin.write("".join(line + "\n" for line in [*lines, f"wait {ready}"]))
        process.stdin.flush()
        until(lambda: os.path.exists(ready), "the emitter is ready")
        live = self.recorded(self.path("jobs"))
        until(lambda: held(Recording(live)).get("many" * 9 + "599"), "the points are in the file")
        self.assertGreater(len([s for s in Recording(live).segments if s.kind == KIND_CATALOG]), 1)
        wanted = emitted(lines)
        for path in (live, None):
            if path is None:
                os.unlink(ready)
                path = self.finish(process)
            recording = Recording(path)
            self.assertEqual(recording.problems, [])
            found = held(recording)
            for name, points in found.items():
                self.assertLessEqual(points.items(), wanted[name].items(), name)
            self.assert_as_queried(path, recording, ["third", "left", "middle", "right", "few0", "noise0"])
            self.assertLess(sum(map(len, found.values())), sum(map(len, wanted.values())), "nothing was dropped at the limit")

    def test_a_unit_that_comes_later(self):
        ready = self.path("ready")
        process = self.run_emitter([f"wait {ready}"])
        until(lambda: os.path.exists(ready), "the emitter is ready")
        live = self.recorded(self.path("jobs"))
        sonde("put", "--socket", os.path.join(os.path.dirname(live), "agent.sock"), "pull", "1")
        until(lambda: held(Recording(live)), "the points are in the file")
        self.assertEqual(Recording(live).metrics[0]["unit"], "")
        os.unlink(ready)
        process.stdin.write("unit pull newtons\npoint pull 2000 0\n")
        recording = Recording(self.finish(process))
        self.assertEqual([(m["name"], m["unit"]) for m in recording.metrics], [("pull", "newtons")])

    def test_nested_and_open_spans(self):
        ready = self.path("ready")
        process = self.run_emitter(["begin outer a=b", "begin inner", f"wait {ready}", "end", "begin open"])
        path = until(lambda: self.recorded(self.path("jobs")), "a recording")
        # The test waits until the agent has read the spans. One that ended earlier would be stored
        # only once.
        until(lambda: {e.text for e in Recording(path).events} == {"outer", "inner"}, "the spans")
        os.unlink(ready)
        recording = Recording(self.finish(process))
        spans = {e.text: e for e in recording.last_events()}
        self.assertEqual(set(spans), {"outer", "inner", "open"})
        self.assertEqual([spans[name].parent for name in ("inner", "open", "outer")], [spans["outer"].id, spans["outer"].id, 0])
        self.assertLess(spans["inner"].end, 2**63 - 1)
        self.assertLess(spans["open"].end, 2**63 - 1)  # an open span ends with its process
        self.assertEqual({name for name in spans if "unfinished" in dict(spans[name].labels)}, {"outer", "open"})
        self.assertGreater(len(recording.events), len(spans), "the record of a span that ended follows that of its begin")

    def test_a_file_that_is_being_written(self):
        """Copies that are made during writes contain only written points. The last copy has all of
        them."""
        lines, ready = made_lines(9000, 4), self.path("ready")
        wanted = emitted(lines)
        process = self.run_emitter([])

        def feed():
            process.stdin.write("".join(line + "\n" for line in [*lines, f"wait {ready}"]))
            process.stdin.flush()

        feeder = threading.Thread(target=feed)
        feeder.start()
        path = until(lambda: self.recorded(self.path("jobs")), "a recording")
        count, all_points = 0, sum(map(len, wanted.values()))
        end = time.monotonic() + PATIENCE_S
        while count < all_points and time.monotonic() < end:
            recording = Recording(path)
            self.assertEqual((recording.problems, recording.state), ([], 1))
            found = held(recording)
            for name, points in found.items():
                self.assertLessEqual(points.items(), wanted[name].items(), name)
            self.assertGreaterEqual(sum(map(len, found.values())), count, "points went away")
            count = sum(map(len, found.values()))
        feeder.join()
        self.assert_same(held(recording), wanted)
        self.assert_as_queried(path, recording, wanted)
        until(lambda: os.path.exists(ready), "the emitter is ready")
        os.unlink(ready)
        recording = Recording(self.finish(process))
        self.assertEqual((recording.problems, recording.state), ([], 2))
        self.assert_same(held(recording), wanted)


class Crashes(FormatTest):
    def start_agent(self, folder):
        """Starts an agent; returns its process, and the descriptor whose closing stops it."""
        ours, its = socket.socketpair()
        process = subprocess.Popen([SONDE, "agent", "-l", "1", "--folder", folder, "--host", "node", f"--control-fd={its.fileno()}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=[its.fileno()])
        its.close()
        self.running.append(process)
        self.addCleanup(ours.close)
        ours.settimeout(PATIENCE_S)
        self.assertEqual(ours.recv(5), b"ready")
        return process, ours

    def emit(self, folder, lines):
        subprocess.run(EMITTER, input="".join(line + "\n" for line in lines), text=True, check=True, timeout=PATIENCE_S,
                       env={**os.environ, "SONDE_SOCKET": os.path.join(folder, "agent.sock"), "SONDE_LEVEL": "1"})

    def test_a_killed_writer_and_a_machine_that_went_down(self):
        folder = self.path("agent")
        os.mkdir(folder, 0o700)
        path = os.path.join(folder, "node.sonde")
        agent, _ = self.start_agent(folder)
        before, after = made_lines(700, 5), [line.replace(f" {START // 10**15}", f" {START // 10**15 - 1}") for line in made_lines(900, 6)]
        self.emit(folder, before)
        tails = lambda: [s for s in Recording(path).segments if s.kind in (2, 3, 4) and s.used]
        until(lambda: held(Recording(path)) == emitted(before), "the points are in the file")
        until(lambda: all(s.notes[0][0] == s.used for s in tails()), "all is written to the disk")
        self.emit(folder, after)
        wanted = emitted(before + after)
        until(lambda: held(Recording(path)) == wanted, "the points are in the file")
        agent.kill()
        agent.wait()
        killed = Recording(path)
        self.assertEqual((killed.problems, killed.state), ([], 1))
        self.assert_as_queried(path, killed, wanted)

        for torn in (False, True):
            with self.subTest(torn=torn):
                self.check_fallen(path, killed, torn, emitted(before), wanted)
        self.check_flips(path, killed)

    def check_fallen(self, path, killed, torn, before, wanted):
        """Checks a copy of the file as after a failure of the machine: with another boot id, and
        without the bytes that were not synced. With `torn`, these have a changed bit instead."""
        fallen = self.path(f"fallen-{torn}")
        os.mkdir(fallen, 0o700)
        lost = os.path.join(fallen, "node.sonde")
        with open(path, "rb") as file:
            content = bytearray(file.read())
        content[88] ^= 1
        for segment in killed.segments:
            unit = {2: 8 + 8 * len(killed.sets[segment.set]), 3: 24}.get(segment.kind, 1)
            if segment.kind != KIND_NONE:
                noted = segment.offset + unit * max(n for n, _ in segment.notes)
                content[noted:segment.offset + segment.size] = bytes(segment.offset + segment.size - noted)
                if torn and segment.kind == 3:
                    content[noted - 1] ^= 1
        with open(lost, "wb") as file:
            file.write(content)
        os.chmod(lost, 0o600)
        left = Recording(lost)
        for name, points in held(left).items():
            self.assertLessEqual(points.items(), wanted[name].items())
        for name, points in ({} if torn else before).items():
            self.assertLessEqual(points.items(), held(left)[name].items())
        # sonde's own reader returns the same points, and its writer keeps them.
        self.assert_as_queried(lost, left, held(left))
        again, control = self.start_agent(fallen)
        control.close()
        _, said = again.communicate(timeout=PATIENCE_S)
        self.assertEqual(again.returncode, 0, said)
        taken_up = Recording(lost)
        self.assertEqual((taken_up.problems, taken_up.state), ([], 2))
        self.assert_same(held(taken_up), held(left))
        self.assertEqual([e.text for e in taken_up.events], [e.text for e in left.events])

    def check_flips(self, path, killed):
        """Flips bits in a file that was not closed, in parts with their own checksum: table
        entries, the catalog, events in their tail."""
        with open(path, "rb") as file:
            content = file.read()
        places = [killed.table_at + 20]
        places += [s.offset + at for s in killed.segments if s.kind in (1, 4) and s.used for at in (9, 40, s.used - 30)]
        for at in places:
            damaged = bytearray(content)
            damaged[at] ^= 2
            with open(self.path("flipped.sonde"), "wb") as file:
                file.write(damaged)
            self.assertNotEqual(Recording(self.path("flipped.sonde")).problems, [], f"a flipped bit of byte {at} was not noticed")


class Damages(FormatTest):
    def flip_and_read(self, path, count):
        """Flips one bit after another. Each is reported, and the other values stay correct."""
        with open(path, "rb") as file:
            content = file.read()
        whole = Recording(path)
        covered = [(0, 512 + 64 * whole.table_used), *((s.offset, s.offset + s.size) for s in whole.segments if s.kind != KIND_NONE)]
        places = [at for start, end in covered for at in range(start, end)]
        r = random.Random(len(content))
        for at in [*range(64), *range(64, 512, 16), *r.sample(places, count)]:
            damaged = bytearray(content)
            damaged[at] ^= 1 << r.randrange(8)
            with open(self.path("flipped.sonde"), "wb") as file:
                file.write(damaged)
            try:
                recording = Recording(self.path("flipped.sonde"))
            except Damage:
                continue
            self.assertNotEqual(recording.problems, [], f"a flipped bit of byte {at} was not noticed")
            if at < 512:
                continue
            for found, points in zip(recording.points, whole.points):
                self.assertLessEqual(found.items(), points.items(), f"byte {at}")

    def test_hot_blocks(self):
        self.flip_and_read(self.make_import(12, 1000)[0], 150)

    def test_cold_blocks(self):
        self.flip_and_read(self.make_import(2000, 1000)[0], 15)

    def test_points_and_events(self):
        self.flip_and_read(self.finish(self.run_emitter(made_lines(30, 7))), 150)

    def test_a_block_behind_a_damaged_one_is_read(self):
        path, whole = self.make_import(9000, 1000)
        first = min(whole.blocks, key=lambda b: b.first)
        with open(path, "rb") as file:
            content = bytearray(file.read())
        at = content.find(bytes(first.raw[:104]))
        for damaged_at in (at + 20, at + 104 + first.directory_size + 5):
            with self.subTest(damaged_at=damaged_at - at):
                damaged = bytearray(content)
                damaged[damaged_at] ^= 4
                with open(self.path("damaged.sonde"), "wb") as file:
                    file.write(damaged)
                recording = Recording(self.path("damaged.sonde"))
                self.assertTrue(any(p.startswith("blocks at") for p in recording.problems), recording.problems)
                for found, points in zip(recording.points, whole.points):
                    self.assertEqual(found, {t: bits for t, bits in points.items() if t > first.last_time})


if __name__ == "__main__":
    unittest.main(verbosity=2)
