"""sonde.dask's CSV files: a round trip, peaks, and reports of damage."""

import csv
import gzip
import os
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PACKAGE"])
from published import BENCHMARK  # noqa: E402

from sonde.dask import Monitor, _csv, _keys  # noqa: E402

METRICS = ("total-mem", "mem-util", "compute-util")
HEAD = ["job", "dag", "timestamp"]


class Folder(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="sp-")
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name)

    def file(self, text, name="worker_0.csv"):
        path = self.root / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


class RoundTrip(Folder):
    def back(self, columns, rows, name="worker_0.csv"):
        path = self.root / "new" / "folder" / name
        _csv.write(path, columns, iter(rows))
        recording = _csv.read(path)
        self.assertEqual((recording.columns, recording.path), (columns, str(path)))
        self.assertEqual([p.name for p in path.parent.iterdir()], [name])
        return recording.rows

    def test_the_form_of_the_readme(self):
        path = self.root / "worker_0.csv"
        columns = [*HEAD, *METRICS]
        _csv.write(path, columns, [(12, 23, 1173.392865, [32480428032, 30068703232], [11, 10], (86, 87)), (12, 23, 1173.5, [1], [2], [3])])
        self.assertEqual(path.read_text(), ",".join(columns) + '\n12,23,1173.392865,"32480428032, 30068703232","11, 10","86, 87"\n12,23,1173.5,1,2,3\n')

    def test_missing_is_not_zero_and_numbers_keep_their_kind(self):
        rows = [
            [1, 0, 0.5, [1, None, 3], [], [0.5, 2.0, 1e300]],
            [None, None, 1.0, [None, None], [0], [None, 0.0]],
            [2, 1, 2.0, [2**63], [-5], [float("inf")]],
        ]
        back = self.back([*HEAD, "total-mem", "mem-util", "power"], rows)
        self.assertEqual(back, rows)
        self.assertEqual([[type(v) for v in cell] for cell in back[0][3:]], [[int, type(None), int], [], [float] * 3])

    def test_one_value_for_all_devices_and_texts(self):
        back = self.back([*HEAD, "spread", "state", "gpu-uuid"], [(1, 0, 0.5, 7, "warming up, still", ["GPU-a", "GPU-b"]), (1, 0, 1, None, "", [])])
        self.assertEqual(back, [[1, 0, 0.5, [7], "warming up, still", "GPU-a, GPU-b"], [1, 0, 1.0, [], [], []]])

    def test_numbers_of_other_libraries(self):
        class Scalar:
            def item(self):
                return 2.5

        class Whole:
            def item(self):
                return 3

        self.assertEqual(self.back([*HEAD, "power"], [(1, 0, 0.5, [Scalar(), Whole(), True])]), [[1, 0, 0.5, [2.5, 3, 1]]])

    def test_packed(self):
        rows = [[1, 0, 0.5, [7]]]
        self.assertEqual(self.back([*HEAD, "mem-util"], rows, "worker_0.csv.gz"), rows)
        self.assertEqual((self.root / "new/folder/worker_0.csv.gz").read_bytes()[:2], b"\x1f\x8b")

    def test_a_write_that_fails_leaves_what_was_there(self):
        path = self.root / "worker_0.csv"
        _csv.write(path, HEAD, [(1, 2, 3.0)])
        before = path.read_bytes()

        def rows():
            yield (1, 2, 4.0)
            raise RuntimeError("the worker died")

        with self.assertRaisesRegex(RuntimeError, "died"):
            _csv.write(path, HEAD, rows())
        self.assertEqual((path.read_bytes(), os.listdir(self.root)), (before, ["worker_0.csv"]))


class Keys(Folder):
    KEYS = ["inc-1", "a, b", "('sum-3f', 0)", ("sum-3f", 0, 1), ("a, b", ("c", "d)'\"")), "12", 12, -1.5, "1e5", "", " x ", "it's", '"quoted"', "'", "b'x'", b"x\0y",
            "line\nbreak", "foo(1)", "(", ")", "a,", ",", "None", None, True, "True", "ключ", ("x", None, b"y", 2.5), (), ("one",), "\\", ("\\", 1), "nan", "a\u2028b"]

    def test_told_apart_again(self):
        columns = [*HEAD, "tasks"]
        rows = [[1, 0, float(i), [key]] for i, key in enumerate(self.KEYS)] + [[1, 0, 99.0, self.KEYS], [1, 0, 99.5, []]]
        _csv.write(self.root / "worker_0.csv", columns, rows)
        self.assertEqual(_csv.read(self.root / "worker_0.csv").rows, rows)

    def test_any_keys(self):
        some = random.Random(8)
        alphabet = "ab1,, ()'\"\\\n-é"

        def key(depth=0):
            kind = some.randrange(6 if depth < 2 else 4)
            if kind < 3:
                return "".join(some.choices(alphabet, k=some.randrange(6)))
            return some.randrange(-9, 9) if kind == 3 else tuple(key(depth + 1) for _ in range(some.randrange(3)))

        for _ in range(1500):
            keys = [key() for _ in range(some.randrange(5))]
            self.assertEqual(_keys.read(_keys.write(keys)), keys)

    def test_plain_ones_are_plain(self):
        self.assertEqual(_keys.write(["inc-1", "sum(x)-2", ("a", 0)]), "inc-1, sum(x)-2, ('a', 0)")
        self.assertEqual(_keys.write(["a\nb", "\0"]), r"'a\nb', '\x00'")

    def test_what_others_wrote_without_quotes(self):
        self.assertEqual(_keys.read("('x-1', 0), inc-2, it's, (odd, 'half"), [("x-1", 0), "inc-2", "it's", "(odd", "'half"])

    def test_thousands_at_once(self):
        keys = [f"long-running-{i:060}" for i in range(5000)]  # 360 KiB
        _csv.write(self.root / "worker_0.csv", [*HEAD, "tasks"], [(1, 0, 1.0, keys)])
        self.assertEqual(_csv.read(self.root / "worker_0.csv").rows[0][3], keys)


class Damage(Folder):
    GOOD = b"job,dag,timestamp,mem-util\n1,0,0.5,7\n"

    def refuses(self, content, words, name="worker_0.csv"):
        path = self.file(content, name)
        with self.assertRaises(ValueError) as caught:
            _csv.read(path)
        self.assertRegex(str(caught.exception), f"^{path}:{words}")

    def test_names_file_and_line(self):
        for content, words in [
            (b"", "1: .*empty"),
            (b"timestamp,mem-util\n", "1: no recording .* job, dag$"),
            (b"job,dag,timestamp,a,a\n", "1: two columns"),
            (self.GOOD + b"1,0\n", "3: 2 cells where the header has 4"),
            (self.GOOD + b"\n", "3: 0 cells"),
            (self.GOOD + b'1,0,0.5,"7, 8', "3: unexpected end"),
            (self.GOOD + b"1,0,0.5,7x\n", "3: mem-util is '7x'"),
            (self.GOOD + b"1,zero,0.5,7\n", "3: dag is 'zero'"),
            (self.GOOD + b"1,0,,7\n", "3: timestamp is ''"),
            (self.GOOD + b"1,0,\xff,7\n", "[0-9]+: .*utf-8"),
            (self.GOOD + b"1,0,0.5,\0\n", "3: "),
            (gzip.compress(self.GOOD * 1000)[:-20], "[0-9]+: "),
            (gzip.compress(b"")[:5], "[0-9]+: "),
        ]:
            with self.subTest(content[-20:]):
                self.refuses(content, words)

    def test_any_damage_is_named_or_none(self):
        some = random.Random(3)
        whole = self.GOOD.replace(b"mem-util", b"mem-util,tasks").replace(b"0.5,7", b'0.5,"7, 8","a, (\'b\', 1)"') * 3
        for _ in range(500):
            bad = bytearray(whole)
            for _ in range(some.randrange(1, 4)):
                place = some.randrange(len(bad))
                bad[place : place + some.randrange(3)] = some.choices(b'"\n\r,\0(\')x\xff\\9', k=some.randrange(3))
            path = self.file(bytes(bad))
            try:
                _csv.read(path)
            except ValueError as error:
                self.assertRegex(str(error), rf"^{path}:[0-9]+: ")

    def test_what_spreadsheets_do_is_no_damage(self):
        path = self.file(b"\xef\xbb\xbf" + self.GOOD.replace(b"\n", b"\r\n").rstrip())
        self.assertEqual(_csv.read(path).rows, [[1, 0, 0.5, [7]]])


class Files(Folder):
    def test_in_the_order_of_numbers(self):
        for number in (11, 2, 0, 10, 1):
            self.file("", f"worker_{number}.csv" if number % 2 else f"worker_{number}.csv.gz")
        for other in ("worker_x.csv", "worker_1.csv.12.unfinished", "notes.txt", "worker_3.csv~"):
            self.file("", other)
        names = ["worker_0.csv.gz", "worker_1.csv", "worker_2.csv.gz", "worker_10.csv.gz", "worker_11.csv"]
        self.assertEqual([os.path.basename(path) for path in _csv.files(self.root)], names)

    def test_several_names(self):
        for name in ("a_0.csv", "b_1_0.csv", "b_1_1.csv"):
            self.file("", name)
        with self.assertRaisesRegex(ValueError, "several names.*fname: a, b_1"):
            _csv.files(self.root)
        self.assertEqual(_csv.files(self.root, "b_1"), [str(self.root / f"b_1_{i}.csv") for i in (0, 1)])
        self.assertEqual(_csv.files(self.root, "c"), [])
        self.file(Peaks.TEXT, "b_1_0.csv")
        self.file(Peaks.TEXT, "b_1_1.csv")
        self.assertEqual(Monitor.peaks_from_csv(self.root, "mem-util", workers=1, per_job=False, fname="b_1"), [[75, 100]])

    def test_one_worker_twice(self):
        self.file("", "worker_0.csv")
        self.file("", "worker_0.csv.gz")
        with self.assertRaisesRegex(ValueError, "both there for worker 0"):
            _csv.files(self.root)


class Peaks(Folder):
    TEXT = "job,dag,timestamp,mem-util,power,state\n" + "".join(
        f'{row}\n' for row in ('1,0,1,"9, 75",9.5,on', '1,0,2,"75, 9",8.25,off', '2,0,3,", 100",nan,on', '2,1,4,", 2",,on', ',,5,"99, 99",99.0,on'))

    def recording(self, **more):
        return _csv.read(self.file(self.TEXT, **more))

    def test_of_numbers(self):
        self.assertEqual(_csv.peaks(self.recording(), "mem-util"), {1: [75, 75], 2: [None, 100]})

    def test_floats_stay_floats(self):
        self.assertEqual(_csv.peaks(self.recording(), "power"), {1: [9.5]})

    def test_not_tracked(self):
        for metric in ("compute-util", "timestamp"):
            with self.assertRaisesRegex(KeyError, f"'{metric}' was not tracked in .*worker_0.csv; there is mem-util, power, state"):
                _csv.peaks(self.recording(), metric)

    def test_of_no_numbers(self):
        with self.assertRaisesRegex(ValueError, "state has no peak in .*worker_0.csv"):
            _csv.peaks(self.recording(), "state")
        with self.assertRaisesRegex(ValueError, "tasks has no peak"):
            _csv.peaks(_csv.Recording([*HEAD, "tasks"], [[1, 0, 1.0, []]]), "tasks")

    def test_of_rows_in_memory(self):
        recording = _csv.Recording([*HEAD, "spread"], [(1, 0, 1.0, 3), (1, 0, 2.0, None), (2, 0, 3.0, 2.5)])
        self.assertEqual(_csv.peaks(recording, "spread"), {1: [3], 2: [2.5]})

    def test_of_a_file_and_of_its_rows(self):
        """peaks_of_file() reads only the necessary columns, and finds the same as all rows."""
        seed = int(os.environ.get("SONDE_TEST_SEED") or 6)
        some = random.Random(seed)

        def peaks(function):
            try:
                return repr(function())  # distinguishes 9 from 9.0
            except ValueError as error:
                return str(error)

        wrong = 0
        for turn in range(300 * int(os.environ.get("SONDE_TEST_ROUNDS") or 1)):
            values = some.choice((["1", "9", "75"], ["1", "9.0", "9", "75.5", ""], ["-5", "nan", "", "2"], ["7", "7x", "b"]))
            metric, per_dag = some.choice(("mem-util", "power")), some.random() < 0.5
            lines = [f"job,dag,timestamp,other,{metric}"]
            for _ in range(some.randrange(12)):
                cell = ", ".join(some.choice(values) for _ in range(some.randrange(4)))
                lines.append(f'{some.choice((0, 1, 12, ""))},{some.randrange(2)},{some.random()},x,"{cell}"' + ",1" * (some.random() < 0.01))
            path = self.file("\n".join(lines) + "\n")
            expected = peaks(lambda: _csv.peaks(_csv.read(path), metric, per_dag))
            self.assertEqual(peaks(lambda: _csv.peaks_of_file(path, metric, per_dag)), expected, (seed, turn))
            wrong += expected[0] != "{"
        self.assertGreater(wrong, 10)

    def test_a_job_without_a_value_has_no_peak(self):
        """As in the answers of a running monitor, which sees no rows without a value."""
        path = self.file('job,dag,timestamp,mem-util\n0,0,1.5,", "\n3,0,1.6,", 7"\n4,0,1.7,\n')
        for found in (_csv.peaks_of_file(path, "mem-util"), _csv.peaks(_csv.read(path), "mem-util")):
            self.assertEqual(found, {3: [None, 7]})

    def test_shapes(self):
        for number in (0, 2, 10):
            self.file(self.TEXT, f"worker_{number}.csv")
        each = {1: [75, 75], 2: [None, 100]}
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util"), [each] * 3)
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", workers=[10, 0]), [each] * 2)
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", workers=[2]), [each])
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", workers=2), [each])
        self.assertEqual(_csv.peaks_from_csv(str(self.root), "mem-util", workers=[2], per_job=False), [[75, 100]])
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", per_job=False), [[75, 100]] * 3)
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", workers=[]), [])

    def test_workers_are_numbers_not_places(self):
        self.file(self.TEXT, "worker_2.csv")
        self.file(self.TEXT.replace("75", "76"), "worker_10.csv")
        self.assertEqual(_csv.peaks_from_csv(self.root, "mem-util", workers=[10], per_job=False), [[76, 100]])

    def test_workers_that_are_not_there(self):
        self.file(self.TEXT, "worker_0.csv")
        for workers in ([0, 7], 7, [-1]):
            with self.assertRaisesRegex(ValueError, "no worker (7|-1) in .*: there is 0$"):
                _csv.peaks_from_csv(self.root, "mem-util", workers=workers)

    def test_no_files(self):
        with self.assertRaisesRegex(FileNotFoundError, "no NAME_N.csv in"):
            _csv.peaks_from_csv(self.root, "mem-util")
        with self.assertRaises(FileNotFoundError):
            _csv.peaks_from_csv(self.root / "absent", "mem-util")


@unittest.skipUnless(BENCHMARK.is_dir(), "the published recordings are not here (SONDE_DATA)")
class Published(unittest.TestCase):
    """Two workers of the benchmark GPU-BDB, 8 GPUs each, 27 jobs, three metrics: 1,296 peaks, 493
    of which were wrong in the original."""

    def test_peaks(self):
        plain = []
        for number in range(2):
            with gzip.open(BENCHMARK / f"worker_{number}.csv.gz", "rt") as file:
                plain.append(list(csv.DictReader(file)))
        compared = as_text = 0
        for metric in METRICS:
            found = _csv.peaks_from_csv(BENCHMARK, metric)
            self.assertEqual([len(jobs) for jobs in found], [27, 27])
            for rows, by_job in zip(plain, found):
                for job, peak in by_job.items():
                    cells = [row[metric].split(", ") for row in rows if row["job"] == str(job)]
                    for device in range(8):
                        compared += 1
                        self.assertEqual(peak[device], max(int(cell[device]) for cell in cells))
                        as_text += str(peak[device]) != max(cell[device] for cell in cells)
                highest = [max(int(row[metric].split(", ")[device]) for row in rows) for device in range(8)]
                self.assertEqual(_csv.over_jobs(by_job), highest)
        self.assertEqual((compared, as_text), (1296, 493))

    def test_written_again_it_is_the_same(self):
        with tempfile.TemporaryDirectory(prefix="sp-") as folder:
            recording = _csv.read(BENCHMARK / "worker_1.csv.gz")
            _csv.write(folder + "/worker_0.csv", recording.columns, recording.rows)
            again = _csv.read(folder + "/worker_0.csv")
            self.assertEqual((again.columns, again.rows), (recording.columns, recording.rows))


if __name__ == "__main__":
    unittest.main()
