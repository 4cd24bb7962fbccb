"""sonde.dask.visualize: the pictures show the recorded values, and are readable."""

import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, os.environ["PACKAGE"])
os.environ["MPLBACKEND"] = "Agg"
from sonde.dask import _csv  # noqa: E402
from sonde.dask import visualize as vis  # noqa: E402
from sonde.plot._figure import LIGHT  # noqa: E402

HEAD = ["job", "dag", "timestamp"]
COLUMNS = [*HEAD, "total-mem", "compute-util", "tasks", "power", "spread", "state"]
GIB = 1 << 30


def row(job, dag, time, one, two):
    """Makes a row of a worker with two GPUs. `one` and `two` are their utilisations."""
    return (job, dag, time, [3 * GIB, 2 * GIB], [one, two], [("inc", 0), "sum"][: (one or 0) % 3], [1.5, 2.5], one, "text")


ROWS = [row(1, 0, 0.5, 99, 98), *(row(2, i // 4, 10 + i / 5, i, 50 - i) for i in range(8)), row(3, 0, 12.0, 1, 1), row(2, 7, 12.5, None, 3), row(2, 7, 12.7, 9, 75)]
TIMES = [10 + i / 5 for i in range(8)] + [12.5, 12.7]


class NoMatplotlib(unittest.TestCase):
    def test_says_what_to_install(self):
        text = "import sys; sys.modules['matplotlib'] = None; from sonde.dask import visualize as v; v.lines(sys.argv[1], 1, ['spread'])"
        with tempfile.TemporaryDirectory(prefix="sp-") as folder:
            _csv.write(folder + "/worker_0.csv", [*HEAD, "spread"], [(1, 0, 1.0, 1)])
            result = subprocess.run([sys.executable, "-c", text, folder + "/worker_0.csv"], capture_output=True, text=True,
                                    env=os.environ | {"PYTHONPATH": os.environ["PACKAGE"]})
        self.assertIn("ImportError: sonde.dask.visualize needs Matplotlib (pip install matplotlib)", result.stderr)


def shades(axis):
    """Returns the start and the end of each shade."""
    return [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for one in axis.collections[:1] for path in one.get_paths()]


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "Matplotlib is not here")
class Picture(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="sp-")
        cls.addClassCleanup(place.cleanup)
        cls.root = pathlib.Path(place.name)
        cls.file = cls.root / "worker_0.csv"
        _csv.write(cls.file, COLUMNS, ROWS)

    def setUp(self):
        from matplotlib import pyplot

        self.addCleanup(pyplot.close, "all")
        watch = warnings.catch_warnings()
        watch.__enter__()
        self.addCleanup(watch.__exit__, None, None, None)
        warnings.simplefilter("error", UserWarning)  # warnings of impossible layouts
        self.pyplot = pyplot

    def write(self, columns, rows):
        path = self.root / f"worker_{len(list(self.root.iterdir()))}.csv"
        _csv.write(path, columns, rows)
        return path

    def extents(self, figure, artists):
        figure.canvas.draw()
        return [artist.get_window_extent() for artist in artists]

    def refuses(self, words, *arguments, **more):
        for draw in (vis.lines, vis.boxes, vis.heat):
            with self.assertRaisesRegex(ValueError, words):
                draw(*arguments, **more)
        self.assertEqual(self.pyplot.get_fignums(), [])


class Lines(Picture):
    def test_one_for_each_gpu_over_the_time_of_the_job(self):
        figure = vis.lines(self.file, 2, ["compute-util", "total-mem"])
        self.assertEqual([axis.get_title(loc="left") for axis in figure.axes], ["compute-util", "total-mem"])
        self.assertEqual([axis.get_ylabel() for axis in figure.axes], ["%", "GiB"])
        self.assertTrue(figure.axes[0].get_shared_x_axes().joined(*figure.axes))
        self.assertEqual(tuple(figure.get_size_inches()), (20, 10))
        one, two = figure.axes[0].get_lines()
        self.assertEqual([line.get_label() for line in (one, two)], ["GPU 0", "GPU 1"])
        seen = [(x, y) for x, y in zip(one.get_xdata(), one.get_ydata()) if y == y]
        self.assertEqual(seen, [(10 + i / 5, i) for i in range(8)] + [(12.7, 9)])
        self.assertEqual([y for y in two.get_ydata() if y == y], [50 - i for i in range(8)] + [3, 75])
        self.assertEqual({y for y in figure.axes[1].get_lines()[0].get_ydata() if y == y}, {3.0})
        low, high = figure.axes[0].get_xlim()
        self.assertTrue(9.9 < low < 10 and 12.7 < high < 12.8, (low, high))

    def test_a_line_ends_where_another_job_had_the_worker_and_where_a_value_is_missing(self):
        one, two = vis.lines(self.file, 2, ["compute-util"]).axes[0].get_lines()
        self.assertEqual([y == y for y in two.get_ydata()], [True] * 8 + [False] + [True] * 2 + [False])
        self.assertEqual([y == y for y in one.get_ydata()], [True] * 8 + [False, False] + [True, False])

    def test_every_second_dag_is_shaded_in_every_metric(self):
        figure = vis.lines(self.file, 2, ["compute-util", "total-mem"])
        for axis in figure.axes:
            self.assertEqual([(round(a, 6), round(b, 6)) for a, b in shades(axis)], [(10.8, 11.4)])
        self.assertEqual([text.get_text() for text in figure.axes[0].texts], ["dag 0", "dag 1", "dag 7"])

    def test_the_legend_is_outside_and_nothing_overlaps(self):
        many = self.write([*HEAD, "compute-util"], [(1, i // 9, i / 5, [i % 100] * 12) for i in range(200)])
        figure = vis.lines(many, 1, ["compute-util"])
        legend = figure.axes[0].get_legend()
        self.assertEqual([text.get_text() for text in legend.get_texts()], [f"GPU {i}" for i in range(12)])
        looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].get_lines()}
        self.assertEqual(len(looks), 12)
        axis, box, title, *numbers = self.extents(figure, [figure.axes[0], legend, figure.axes[0]._left_title, *figure.axes[0].texts])
        self.assertGreaterEqual(box.x0, axis.x1 - 1)
        self.assertLessEqual(box.x1, figure.bbox.x1)
        self.assertTrue(numbers)
        self.assertFalse([n for n in numbers if n.overlaps(title)])
        self.assertFalse([n for n, m in zip(numbers, numbers[1:]) if n.overlaps(m)])

    def test_metrics_of_the_worker(self):
        figure = vis.lines(self.file, 2, ["tasks", "spread", "power"])
        tasks, spread, power = (axis.get_lines() for axis in figure.axes)
        self.assertEqual([y for y in tasks[0].get_ydata() if y == y], [(i % 3) for i in range(8)] + [0, 0])
        self.assertEqual([len(lines) for lines in (tasks, spread, power)], [1, 1, 2])
        self.assertEqual(tasks[0].get_drawstyle(), "steps-post")
        self.assertTrue(all(float(tick).is_integer() for tick in figure.axes[0].get_yticks()))
        self.assertEqual([text.get_text() for text in figure.axes[0].get_legend().get_texts()], ["GPU 0", "GPU 1"])
        self.assertIsNone(vis.lines(self.file, 2, "tasks").axes[0].get_legend())

    def test_gpus_by_their_index_on_the_node(self):
        path = self.write([*HEAD, "compute-util", "gpu-index"], [(1, 0, float(i), [i, i], "4, 7") for i in range(3)])
        self.assertEqual([line.get_label() for line in vis.lines(path, 1, "compute-util").axes[0].get_lines()], ["GPU 4", "GPU 7"])

    def test_one_row(self):
        axis = vis.lines(self.file, 1, "compute-util").axes[0]
        self.assertEqual(axis.get_lines()[0].get_marker(), "o")
        self.assertEqual([text.get_text() for text in axis.texts], ["dag 0"])
        for draw in (vis.boxes, vis.heat):
            self.assertEqual([text.get_text() for text in draw(self.file, 1, "compute-util").axes[0].texts], ["dag 0"])

    def test_hundreds_of_dags_are_no_barcode(self):
        """A stretch of fewer than 3 points is not shaded; a long one among short ones is."""
        dags = [*range(300), *[300] * 300, *[301] * 300, *range(302, 547)]
        path = self.write([*HEAD, "compute-util"], [(1, dag, i / 5, [i % 100]) for i, dag in enumerate(dags)])
        [(low, high)] = shades(vis.lines(path, 1, "compute-util").axes[0])
        self.assertEqual((round(low, 6), round(high, 6)), (120.0, 180.0))
        self.assertEqual(len(shades(vis.boxes(path, 1, "compute-util").axes[0])), 1)

    def test_memory_near_its_limit_is_not_flat(self):
        used = [(31 + i % 7 / 10) * GIB for i in range(20)]
        path = self.write([*HEAD, "total-mem", "mem-util"], [(1, 0, float(i), [one], [one / (32 * GIB) * 100]) for i, one in enumerate(used)])
        axis = vis.lines(path, 1, "total-mem").axes[0]
        low, high = axis.get_ylim()
        self.assertTrue(30.8 < low < 31 and 32 < high < 32.2, (low, high))
        self.assertIn("of 32", [text.get_text() for text in axis.texts])
        self.assertEqual([list(line.get_ydata()) for line in axis.get_lines()][1], [32.0, 32.0])
        # as in dask-metrics
        activity = self.write([*HEAD, "total-mem", "mem-util"], [(1, 0, float(i), [one], [i + 1]) for i, one in enumerate(used)])
        self.assertNotIn("of 32", [text.get_text() for text in vis.lines(activity, 1, "total-mem").axes[0].texts])
        little = self.write([*HEAD, "total-mem", "mem-util"], [(1, 0, float(i), [i * GIB], [i / 32 * 100]) for i in range(6)])
        self.assertEqual(vis.lines(little, 1, "total-mem").axes[0].get_ylim()[0], 0)

    def test_heat(self):
        figure = vis.heat(self.file, 2, ["compute-util", "total-mem"])
        self.assertEqual([axis.get_title(loc="left") for axis in figure.axes[:2]], ["compute-util", "total-mem"])
        self.assertEqual([text.get_text() for text in figure.axes[0].get_yticklabels()], ["GPU 0", "GPU 1"])
        meshes = [one for one in figure.axes[0].collections if hasattr(one, "get_coordinates")]
        cells = [mesh.get_array().reshape(2, -1).filled(-1).tolist() for mesh in meshes]
        # -1: missing
        self.assertEqual(cells, [[[*range(8)], [50 - i for i in range(8)]], [[-1, 9], [3, 75]]])
        self.assertEqual({mesh.get_clim() for mesh in meshes}, {(0, 100)})

    def test_nothing_but_missing_values(self):
        empty = self.write([*HEAD, "compute-util", "total-mem"], [(1, 0, 1.0, [], [None, None]), (1, None, 2.0, [], [])])
        for draw in (vis.lines, vis.boxes):
            self.assertEqual(len(draw(empty, 1, ["compute-util", "total-mem"], save=self.root / "empty.png").axes), 2)


class Boxes(Picture):
    def medians(self, axis):
        return [line.get_ydata()[0] for line in axis.get_lines() if line.get_color() == LIGHT.lines[1]]

    def ticks(self, axis):
        return dict(zip(axis.get_xticks(), (text.get_text() for text in axis.get_xticklabels())))

    def test_each_pools_records_of_all_gpus(self):
        figure = vis.boxes(self.file, 2, ["total-mem", "compute-util"], freq=4)
        pools = [[*range(4), *range(50, 46, -1)], [*range(4, 8), *range(46, 42, -1)], [3, 9, 75]]
        self.assertEqual(self.medians(figure.axes[1]), [statistics.median(pool) for pool in pools])
        self.assertEqual(self.medians(figure.axes[0]), [2.5] * 3)
        self.assertEqual(self.ticks(figure.axes[1]), {0: "10.0", 1: "10.8", 2: "12.5"})
        self.assertEqual([axis.get_title(loc="left") for axis in figure.axes], ["total-mem", "compute-util"])

    def test_fifteen_unless_told_otherwise(self):
        self.assertEqual(len(self.medians(vis.boxes(self.file, 2, "compute-util").axes[0])), 1)
        with self.assertRaisesRegex(ValueError, "freq is 0"):
            vis.boxes(self.file, 2, "compute-util", freq=0)

    def test_a_box_without_values_leaves_its_place_empty(self):
        path = self.write([*HEAD, "compute-util"], [(1, 0, float(i), [None if i == 1 else i]) for i in range(3)])
        axis = vis.boxes(path, 1, "compute-util", freq=1).axes[0]
        self.assertEqual(self.medians(axis), [0, 2])
        self.assertEqual(self.ticks(axis), {0: "0.0", 1: "1.0", 2: "2.0"})

    def test_hundreds_can_be_read(self):
        path = self.write([*HEAD, "compute-util"], [(1, 0, 10000 + i / 5, [i % 100]) for i in range(1200)])
        figure = vis.boxes(path, 1, "compute-util", freq=3, width=8, height=4)
        labels = [label for label in figure.axes[0].get_xticklabels() if label.get_text()]
        self.assertGreater(len(labels), 5)
        found = self.extents(figure, labels)
        self.assertFalse([a for a, b in zip(found, found[1:]) if a.x1 + 2 > b.x0])
        ticks = self.ticks(figure.axes[0])
        times = [float(text) for text in ticks.values()]
        # round and regular
        self.assertEqual({round(b - a, 6) for a, b in zip(times, times[1:])}, {20.0})
        self.assertEqual([round(10000 + place * 3 / 5, 6) for place in ticks], times)

    def test_dags_are_marked(self):
        figure = vis.boxes(self.file, 2, ["compute-util", "total-mem"], freq=2)
        self.assertEqual([text.get_text() for text in figure.axes[0].texts], ["dag 0", "dag 1", "dag 7"])
        for axis in figure.axes:
            [(low, high)] = shades(axis)
            # the boxes of rows 4 to 7
            self.assertEqual((round(low, 6), round(high, 6)), (1.5, 3.5))


class Both(Picture):
    def test_saved(self):
        for draw in (vis.lines, vis.boxes):
            figure = draw(self.file, 2, ["compute-util"], width=6, height=3, save=self.root / "p.png")
            picture = (self.root / "p.png").read_bytes()
            self.assertEqual(picture[:4], b"\x89PNG")
            self.assertEqual([int.from_bytes(picture[at : at + 4], "big") for at in (16, 20)], [int(6 * figure.dpi), int(3 * figure.dpi)])
            self.assertEqual(self.pyplot.get_fignums(), [])
        self.pyplot.close("all")
        vis.lines(self.file, 2, ["compute-util"])
        self.assertEqual(len(self.pyplot.get_fignums()), 1)

    def test_what_is_not_there(self):
        name = "worker_0.csv"
        self.refuses(f"no job 9 in .*{name}; there is 1, 2, 3", self.file, 9, ["compute-util"])
        self.refuses(f"'mem-util' was not tracked in .*{name}; there is total-mem, compute-util", self.file, 2, ["compute-util", "mem-util"])
        self.refuses(f"'state' in .*{name} has no numbers", self.file, 2, ["state"])
        self.refuses("no metric", self.file, 2, [])
        for draw in (vis.lines, vis.boxes):
            with self.assertRaisesRegex(FileNotFoundError, "absent.csv"):
                draw(self.root / "absent.csv", 2, ["compute-util"])

    def test_packed_files_are_taken(self):
        path = self.root / "worker_9.csv.gz"
        _csv.write(path, COLUMNS, ROWS)
        self.assertIn("worker_9, job 2", vis.lines(path, 2, "compute-util")._suptitle.get_text())


if __name__ == "__main__":
    unittest.main()
