"""`sonde plot` and sonde.plot: a picture shows what a query returns, and it is complete or
missing."""

import html.parser
import importlib.util
import math
import os
import pathlib
import re
import resource
import statistics
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree
import zlib

sys.path[:0] = [os.environ["PACKAGE"], os.environ["PLACE"]]
os.environ["MPLBACKEND"] = "Agg"
os.environ["TZ"] = "UTC"
import sonde  # noqa: E402
from place import Place, main, until  # noqa: E402

EMITTER, LIBRARY = os.environ["FORMAT_EMITTER"], os.environ["SONDE_LIBRARY"]
HERE = importlib.util.find_spec("matplotlib") is not None
T, MS = 1_700_000_000_000, 1_000_000  # milliseconds
KIB = 1024


def hexadecimal(value):
    return struct.pack(">d", value).hex()


class Tags(html.parser.HTMLParser):
    """Checks that every opened tag is closed, in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.images, self.names = [], [], [], set()
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        if tag == "img":
            self.images.append(dict(attributes)["src"])
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


def is_png(data):
    """Whether all chunks are complete with correct checksums."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, kinds = 8, []
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(data[at + 4:at + 8 + size])
        kinds.append(kind)
        at += 12 + size
    return kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and at == len(data)


class Plots(Place):
    def record(self, job, puts=(), lines=(), name=None):
        """Makes a recording of points (metric, ms, value, tags) and lines of the emitter; returns
        its folder."""
        put, line = self.root / "puts", self.root / "lines"
        put.write_text("".join(f"put {metric} {t} {value!r} {tags}\n" for metric, t, value, tags in puts))
        line.write_text("".join(text + "\n" for text in lines))
        emit = f"{sys.executable} {EMITTER} {LIBRARY} < {line} && sonde put < {put}"
        result = self.sonde("run", "-q", "-l", "1", *(["--name", name] if name else []), "--", "sh", "-c", emit, env={"SONDE_JOB": job})
        self.assertEqual(result.returncode, 0, result.stderr)
        return str(self.runs / job)

    def plot(self, *words, **more):
        env = {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}", "SONDE_PYTHON": sys.executable}
        return self.sonde("plot", *words, env=env | more)

    def draws(self, *words, **more):
        result = self.plot(*words, **more)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        return result.stderr


class Errors(Plots):
    """Errors that also appear without Matplotlib."""

    def test_the_command_line(self):
        for words, said in (
            (["lins", "x", "-o", "x.png"], "'lins' is no kind of picture; there is lines, boxes, heatmap and spans"),
            (["lines", "-o", "x.png"], "an expression is missing"),
            (["lines", "x"], "the picture's name is missing"),
            (["lines", "x,,y", "-o", "x.png"], "an expression is empty"),
            (["lines", "nope:x", "-o", "x.png"], "nope"),
            (["heatmap", "x", "--by", "host", "-o", "x.png"], "--by is not an option of heatmap"),
            (["spans", "--downsample", "1s-avg", "-o", "x.png"], "--downsample is not an option of spans"),
            (["boxes", "x", "--by", "host", "--every", "1", "-o", "x.png"], "contradict"),
            (["boxes", "x", "--by", "host,,gpu", "-o", "x.png"], "--by takes 1 to 16 keys"),
            (["lines", "x", "--size", "12", "-o", "x.png"], "--size: '12' is no size"),
            (["lines", "x", "--size", "12xnan", "-o", "x.png"], "--size: '12xnan' is no size"),
            (["lines", "x", "--start", "tuesday", "-o", "x.png"], "--start"),
            (["lines", "x", "--theme", "blue", "-o", "x.png"], "light|dark"),
        ):
            with self.subTest(words):
                self.one_line(self.plot(*words), 2, said)
        self.assertFalse((self.root / "x.png").exists())

    def test_names(self):
        run = self.record("a", [("loss", T, 1, "rank=1")])
        self.one_line(self.plot("lines", "los", run, "-o", "x.png"), 1, "there is no metric 'los'; did you mean loss?")
        result = self.plot("lines", "loss", "b", "-o", "x.png")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'b' is not a file, folder, job or address", result.stderr)

    def test_no_python_no_package_no_matplotlib(self):
        run = self.record("a", [("loss", T, 1, "rank=1")])
        self.one_line(self.plot("lines", "loss", run, "-o", "x.png", SONDE_PYTHON="/nowhere/python"), 1, "cannot start Python as /nowhere/python", "--python")
        self.one_line(self.plot("lines", "loss", run, "-o", "x.png", "--python", "/nowhere/python"), 1, "cannot start Python as /nowhere/python")
        (self.root / "sonde.yaml").write_text("python: /nowhere/else\n")
        env = {"PYTHONPATH": f"{os.environ['PACKAGE']}"}
        self.one_line(self.sonde("plot", "lines", "loss", run, "-o", "x.png", "-c", self.root / "sonde.yaml", env=env), 1, "cannot start Python as /nowhere/else")
        bare = self.root / "bare"
        bare.mkdir()
        (bare / "sonde.py").write_text("raise ImportError('not this one')\n")
        self.one_line(self.plot("lines", "loss", run, "-o", "x.png", PYTHONPATH=str(bare)), 1, "has no package sonde (not this one)", "pip install")
        (bare / "sonde.py").unlink()
        (bare / "matplotlib.py").write_text("raise ImportError('no Matplotlib')\n")
        self.one_line(self.plot("lines", "loss", run, "-o", "x.png", PYTHONPATH=f"{bare}:{os.environ['PACKAGE']}"), 1, "sonde.plot needs Matplotlib (pip install matplotlib)")
        self.assertFalse((self.root / "x.png").exists())

    def test_modules_of_the_current_folder_do_not_count(self):
        run = self.record("a", [("loss", T, 1, "rank=1")])
        (self.root / "json.py").write_text("raise SystemExit('this json')\n")
        self.assertNotIn("this json", self.plot("lines", "loss", run, "-o", "x.png").stderr)

    def test_matplotlib_is_imported_only_when_used(self):
        text = "import sys, sonde; sonde.plot.lines; print([m for m in sys.modules if m.partition('.')[0] in ('matplotlib', 'numpy')])"
        result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}"})
        self.assertEqual((result.stdout, result.stderr), ("[]\n", ""))


@unittest.skipUnless(HERE, "Matplotlib is not here")
class Drawn(Plots):
    def setUp(self):
        super().setUp()
        from matplotlib import pyplot

        self.addCleanup(pyplot.close, "all")

    def points(self, line):
        """Returns a line's times in nanoseconds, rounded to microseconds, and its values; without
        gaps."""
        return [(round(x * 86400e6) * 1000, y) for x, y in zip(line.get_xdata(), line.get_ydata()) if y == y]

    def texts(self, legend):
        return [text.get_text() for text in legend.get_texts()]

    def test_lines_are_the_points_of_the_query(self):
        missing = range(10, 15)
        puts = [("used", T + 500 * i, (gpu + 1) * KIB * (i + 1), f"gpu={gpu}") for gpu in (0, 1, 10) for i in range(30) if not (gpu == 1 and i in missing)]
        where = self.record("a", puts, ["unit used bytes"], name="tuning")
        with sonde.AnalysisClient(where) as client:
            axis = sonde.plot.lines("used", client)
            result = client.query("used")
            self.assertIs(sonde.plot.lines("used", client, ax=axis), axis)
        axis = sonde.plot.lines("used", where)
        drawn = {line.get_label(): line for line in axis.get_lines()}
        self.assertEqual([*drawn], ["gpu=0", "gpu=1", "gpu=10"])
        for series in result:
            line = drawn[f"gpu={series.tags['gpu']}"]
            self.assertEqual(self.points(line), [(t, v / KIB) for t, v in series])
            self.assertEqual(sum(y != y for y in line.get_ydata()), int(series.tags["gpu"] == "1"), "a gap where points are missing")
        (gap,) = (i for i, y in enumerate(drawn["gpu=1"].get_ydata()) if y != y)
        self.assertEqual(self.points(drawn["gpu=1"])[gap - 1][0] // MS, T + 500 * 9)
        host = result[0].tags["host"]
        self.assertEqual((axis.get_title(loc="left"), axis.get_ylabel()), (f"used  (host={host})", "KiB"))
        self.assertIn("time of day (UTC)", axis.get_xlabel())
        self.assertTrue(axis.figure._suptitle.get_text().startswith(f"tuning (a)  ·  {host}  ·  2023-11-14 22:13:20, 14.5 s"), axis.figure._suptitle.get_text())
        self.assertEqual(self.texts(axis.get_legend()), [*drawn])
        relative = sonde.plot.lines("used", where, from_start=True)
        self.assertEqual([round(x, 6) for x in relative.get_lines()[0].get_xdata()][:3], [0, 0.5, 1])
        (same,) = sonde.plot.lines([result])
        self.assertEqual([self.points(line) for line in same.get_lines()], [self.points(line) for line in drawn.values()])

    def test_expressions(self):
        """--downsample applies to expressions that have none."""
        from sonde.plot import _data

        for what, downsample, per_span, asked, unit in (
            ("loss", None, None, "none:loss", "bytes"),
            ("loss{rank=a:b}", "10s-avg", None, "none:10s-avg:loss{rank=a:b}", "bytes"),
            ("sum:rate{counter,,1}:loss{a=*}", "1m-max", None, "sum:1m-max:rate{counter,,1}:loss{a=*}", "bytes/s"),
            ("sum:5s-max-nan:rate:loss", "1m-max", None, "sum:5s-max-nan:rate:loss", "bytes/s"),
            ("max:loss", "p95", "epoch", "max:0all-p95:loss", "bytes"),
            ("loss", None, "epoch", "none:0all-avg:loss", "bytes"),
            ("sum:1m-count:loss", "10s-avg", None, "sum:1m-count:loss", ""),
        ):
            self.assertEqual((_data.expression_of(what, downsample, per_span), _data._unit("bytes", asked)), (asked, unit))

    def test_labels(self):
        """Long labels are cut and still differ; hosts of one domain are shown without it."""
        from sonde.plot import _draw

        texts = [f"tag={'x' * 40}{i}{'y' * 40}" for i in range(3)]
        labels = _draw.cut_apart(texts)
        self.assertEqual((len(set(labels)), max(map(len, labels)) <= 48), (3, True), labels)
        self.assertEqual(_draw.cut_apart(["a", "b"]), ["a", "b"])
        self.assertEqual(_draw.cut_apart(["a" * 90] * 2), ["a" * 23 + "…" + "a" * 23] * 2)
        where = self.record("a", [("x", T, 1, f"node=n{i}.cluster.org lr=0.{i}") for i in range(3)])
        self.assertEqual([line.get_label() for line in sonde.plot.lines("x", where).get_lines()], [f"lr=0.{i}" for i in range(3)])
        self.assertEqual([text.get_text() for text in sonde.plot.boxes("x", where, by=["node", "lr"]).get_xticklabels()], [f"n{i}, 0.{i}" for i in range(3)])
        other = self.record("b", [("y", T, 1, f"node=n{i}.cluster.org") for i in range(3)])
        self.assertEqual([line.get_label() for line in sonde.plot.lines("y", other).get_lines()], [f"node=n{i}" for i in range(3)])
        self.assertEqual([text.get_text() for text in sonde.plot.boxes("y", other, by="node").get_xticklabels()], ["n0", "n1", "n2"])

    def test_units_and_rates(self):
        where = self.record("a", [(name, T + 1000 * i, 3000.0 * i, "") for name in ("power", "share", "sent", "plain") for i in range(5)],
                            ["unit power watts", "unit share percent", "unit sent bytes"])
        axes = sonde.plot.lines(["power", "share", "sum:rate:sent", "count:sent", "plain"], where)
        self.assertEqual([axis.get_ylabel() for axis in axes], ["kW", "%", "KiB/s", "", ""])
        self.assertEqual([y for _, y in self.points(axes[0].get_lines()[0])], [0, 3, 6, 9, 12])
        self.assertTrue(axes[2].get_title(loc="left").startswith("sent per second"))
        self.assertEqual(axes[4].yaxis.get_major_formatter().format_data(12000), "12k")

    def test_a_thousand_series(self):
        """The band has the numbers of the aggregations, and outliers have names."""
        def value(rank, i):
            return 5000.0 - i if rank == 417 else -3000.0 if rank == 20 else (rank * 37 + i * 11) % 200 + 100.0

        instants = range(20)
        where = self.record("a", [("wait", T + 1000 * i, value(rank, i), f"rank={rank}") for rank in range(1000) for i in instants])
        axis = sonde.plot.lines("wait", where)
        with sonde.AnalysisClient(where) as client:
            expected = {name: [v for _, v in client.query(f"{name}:wait")[0]] for name in ("min", "max", "avg")}
        lines = {line.get_label(): line for line in axis.get_lines()}
        self.assertEqual(sorted(lines), ["mean", "rank=20", "rank=417"])
        for got, wanted in zip([y for _, y in self.points(lines["mean"])], expected["avg"]):
            self.assertTrue(math.isclose(got, wanted, rel_tol=1e-12), (got, wanted))
        self.assertEqual([y for _, y in self.points(lines["rank=417"])], [value(417, i) for i in instants])
        outer = axis.collections[0].get_paths()[0].vertices
        for i in instants:
            here = [y for x, y in outer if abs(x * 86400e3 - (T + 1000 * i)) < 1]
            self.assertEqual((min(here), max(here)), (expected["min"][i], expected["max"][i]))
        inner = axis.collections[1].get_paths()[0].vertices
        low, _, high = statistics.quantiles([value(rank, 7) for rank in range(1000)], n=4, method="inclusive")
        here = [y for x, y in inner if abs(x * 86400e3 - (T + 7000)) < 1]
        self.assertEqual((min(here), max(here)), (low, high))
        self.assertEqual(self.texts(axis.get_legend()), ["min to max of 1,000 series", "middle half of them", "mean", "rank=417", "rank=20"])
        heat = sonde.plot.heatmap("wait", where)
        (mesh,) = (one for one in heat.collections if hasattr(one, "get_coordinates"))
        self.assertEqual(mesh.get_array().reshape(1000, -1)[417].tolist(), [value(417, i) for i in instants])
        heat.figure.canvas.draw()
        boxes = [text.get_window_extent() for text in heat.get_yticklabels() if text.get_text()]
        self.assertGreater(len(boxes), 5)
        self.assertFalse([1 for a, b in zip(boxes, boxes[1:]) if a.overlaps(b)])
        by_rank = sonde.plot.boxes("wait", where, by="rank")
        by_rank.figure.canvas.draw()
        named = [text.get_window_extent() for text in by_rank.get_xticklabels()]
        self.assertFalse([1 for a, b in zip(named, named[1:]) if a.overlaps(b)])
        many = sonde.plot.lines("wait", where, most=1000, size=(8, 3))
        words = self.texts(many.get_legend())
        self.assertEqual(len(many.get_lines()), 1000)
        self.assertEqual(words[-1], f"… and {1000 - len(words) + 1:,} more")
        many.figure.canvas.draw()
        self.assertGreaterEqual(many.get_legend().get_window_extent().y0, 0)

    def test_long_series_keep_their_extremes(self):
        """With more points than columns, a column shows the least and greatest value of its
        interval."""
        values = [float(i % 97) for i in range(5000)]
        values[1234], values[4321] = 1e6, -1e6
        where = self.record("a", [("long", T + 10 * i, v + rank, f"rank={rank}") for rank in range(3) for i, v in enumerate(values)])
        axis = sonde.plot.lines("long", where, most=2)
        outer = axis.collections[0].get_paths()[0].vertices
        self.assertEqual((min(outer[:, 1]), max(outer[:, 1])), (-1e6, 1e6 + 2))
        mesh = next(one for one in sonde.plot.heatmap("long", where).collections if hasattr(one, "get_coordinates"))
        self.assertLessEqual(mesh.get_array().reshape(3, -1).shape[1], 600)

    def test_boxes(self):
        values = {(rank, i): float((rank * 7 + i * i) % 50) for rank in range(4) for i in range(60)}
        where = self.record("a", [("wait", T + 1000 * i, v, f"rank={rank}") for (rank, i), v in values.items()])

        def medians(axis):
            return [line.get_ydata()[0] for line in axis.get_lines() if len(line.get_ydata()) == 2 and line.get_ydata()[0] == line.get_ydata()[1]]

        over_time = sonde.plot.boxes("wait", where, every=20)
        starts = sorted({(T // 1000 + i) // 20 for i in range(60)})
        pools = [[v for (_, i), v in values.items() if (T // 1000 + i) // 20 == start] for start in starts]
        self.assertEqual(medians(over_time), [statistics.median(pool) for pool in pools])
        by_rank = sonde.plot.boxes("wait", where, by="rank")
        self.assertEqual(medians(by_rank), [statistics.median(values[rank, i] for i in range(60)) for rank in range(4)])
        self.assertEqual([text.get_text() for text in by_rank.get_xticklabels()], ["0", "1", "2", "3"])

    def test_missing_values_are_grey_and_no_zeros(self):
        where = self.record("a", [("x", T + 1000 * i, 5.0 + i, f"rank={rank}") for rank in range(2) for i in range(10) if not (rank == 1 and 3 <= i < 6)])
        (mesh,) = (one for one in sonde.plot.heatmap("x", where).collections if hasattr(one, "get_coordinates"))
        cells = mesh.get_array().reshape(2, -1).filled(-1).tolist()
        self.assertEqual(cells, [[5.0 + i for i in range(10)], [-1 if 3 <= i < 6 else 5.0 + i for i in range(10)]])

    def test_several_runs_are_over_each_other(self):
        one = self.record("one", [("loss", T + 1000 * i, 10.0 - i, "") for i in range(5)] + [("only", T, 1, "")], name="before")
        two = self.record("two", [("loss", T + 86_400_000 + 1000 * i, 9.0 - i, "") for i in range(4)], name="after")
        axis = sonde.plot.lines("loss", [one, two])
        drawn = {line.get_label(): [(round(x, 6), y) for x, y in zip(line.get_xdata(), line.get_ydata())] for line in axis.get_lines()}
        self.assertEqual(drawn, {"before (one)": [(i, 10.0 - i) for i in range(5)], "after (two)": [(i, 9.0 - i) for i in range(4)]})
        self.assertEqual(axis.get_xlabel(), "seconds since the start of the run")
        boxes = sonde.plot.boxes("loss", [one, two])
        self.assertEqual([text.get_text() for text in boxes.get_xticklabels()], ["after (two)", "before (one)"])
        self.assertIn("sonde: missing in the answer: after (two) has no only", self.draws("lines", "only", one, two, "-o", "only.png"))
        with self.assertRaisesRegex(sonde.ClientError, "nothing: No such name"):
            sonde.plot.lines("nothing", [one, two])

    def test_annotations_restarts_and_spans(self):
        lines = [f"span {(T + 1000 * i) * MS} {(T + 1000 * i + 900) * MS} epoch number={i}" for i in range(4)]
        lines += [f"span {(T + 1000 * i) * MS} {(T + 1000 * i + 300) * MS} load number={i}" for i in range(4)]
        where = self.record("a", [("loss", T + 100 * i, i, "") for i in range(40)], lines)
        axis = sonde.plot.lines("loss", where, mark_spans="epoch")
        self.assertEqual([text.get_text() for text in axis.texts if text.get_text().startswith("epoch")], [f"epoch {i}" for i in range(4)])
        (shades,) = axis.collections
        self.assertEqual([round((path.vertices[:, 0].min() * 86400e3) - T) for path in shades.get_paths()], [1000, 3000])
        with self.assertRaisesRegex(ValueError, "no span 'epok' in a; there is epoch, load"):
            sonde.plot.lines("loss", where, mark_spans="epok")
        per_span = sonde.plot.lines("loss", where, per_span="epoch", downsample="max")
        self.assertFalse([y for y in per_span.get_lines()[0].get_ydata() if y != y])
        self.assertEqual([(t // MS - T, v) for t, v in self.points(per_span.get_lines()[0])], [(1000 * i, 10 * i + 8) for i in range(4)])
        bars = sonde.plot.spans(None, where)
        spans = sonde.AnalysisClient(where).spans()
        found = sorted((round(path.vertices[:, 0].min() * 86400e3), round(path.vertices[:, 0].max() * 86400e3)) for one in bars.collections for path in one.get_paths())
        self.assertEqual(found, sorted((s["start_ns"] // MS, s["end_ns"] // MS) for s in spans))
        self.assertEqual(self.texts(bars.get_legend()), ["epoch", "load"])
        given = sonde.plot.spans(sonde.AnalysisClient(where).spans("load"))
        self.assertEqual([len(one.get_paths()) for one in given.collections], [2, 2])
        nothing = sonde.plot.spans(sonde.AnalysisClient(where).spans("nope"))
        self.assertEqual([text.get_text() for text in nothing.texts], ["no spans in this range"])
        self.assertEqual(sonde.plot.spans("load", where).get_title(loc="left"), "spans load")
        with self.assertRaisesRegex(ValueError, "no span 'lod'; there is epoch, load"):
            sonde.plot.spans("lod", where)
        result = self.sonde("run", "-q", "-l", "1", "--resilient", "--restart-on-exit", "7", "--", "sh", "-c",
                            "sonde annotate 'rate <halved>' && echo loss 1 | sonde put && test -e again || { touch again; exit 7; }", env={"SONDE_JOB": "r"})
        self.assertEqual(result.returncode, 0, result.stderr)
        axis = sonde.plot.lines("loss", str(self.runs / "r"), start=0)
        self.assertEqual([text.get_text() for text in axis.texts if text.get_text().startswith("attempt")], ["attempt 1 on 1 node"])
        styles = [line.get_linestyle() for line in axis.get_lines()[1:]]
        self.assertEqual((styles.count("-"), styles.count("--") + styles.count(":") >= 1), (1, True), styles)
        self.assertEqual(len(sonde.plot.lines("loss", str(self.runs / "r"), annotations=False).get_lines()), 1)

    def test_texts_of_annotations_leave_each_other_room(self):
        from matplotlib import pyplot
        from sonde.plot import _draw, _figure

        figure, axis = pyplot.subplots(figsize=(8, 3))
        axis.set_xlim(0, 100)
        marks = [(10, "rate <halved>", False), (10.5, "too near", False), (52, "x" * 80, False), (40, "note", False), (40.5, "attempt 1", True), (99, "at the end", False)]
        _draw.notes([axis], _figure.LIGHT, marks, axis.get_window_extent().width / figure.dpi * 72, 10)
        figure.canvas.draw()
        self.assertEqual({text.get_text() for text in axis.texts} - {"too near"}, {"rate <halved>", "x" * 15 + "…" + "x" * 15, "note", "attempt 1", "at the end"})
        boxes = [text.get_window_extent() for text in axis.texts]
        self.assertFalse([1 for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)])
        self.assertTrue(all(axis.get_window_extent().x0 <= box.x0 and box.x1 <= axis.get_window_extent().x1 for box in boxes))
        self.assertEqual(len(axis.get_lines()), len(marks))

    def test_empty_answers_and_missing_nodes(self):
        where = self.record("a", [("loss", T + 1000 * i, i, "rank=1") for i in range(5)])
        for kind in ("lines", "boxes", "heatmap"):
            said = self.draws(kind, "loss{rank=7}", where, "-o", f"{kind}.png")
            self.assertEqual(said, "sonde: no points of loss in this range\n")
            self.assertTrue(is_png((self.root / f"{kind}.png").read_bytes()))
        self.assertEqual(self.draws("spans", "*", where, "-o", "spans.png"), "sonde: no spans in this range\n")
        pathlib.Path(where, "n9.sonde").write_bytes(b"not a recording at all" * 300)
        said = self.draws("lines", "loss", where, "-o", "partly.svg")
        self.assertIn("missing in the answer: n9", said)
        self.assertIn("missing in the answer: n9", (self.root / "partly.svg").read_text())
        self.assertEqual(self.plot("lines", "loss", where, "-o", "partly.svg", "--strict").returncode, 4)

    def test_formats(self):
        from matplotlib import pyplot

        where = self.record("a", [("loss", T + 1000 * i, i, f"rank={rank}") for i in range(50) for rank in range(2)])
        for suffix in ("png", "svg", "pdf", "PNG"):
            self.assertEqual(self.draws("lines", "loss,max:loss", where, "--size", "5x4", "-o", f"command.{suffix}"), "")
            sonde.plot.save(sonde.plot.lines(["loss", "max:loss"], where, size=(5, 4))[0].figure, self.root / f"same.{suffix}")
            self.assertEqual((self.root / f"same.{suffix}").read_bytes(), (self.root / f"command.{suffix}").read_bytes(), "the same figure is the same file")
        for kind in ("lines", "boxes", "heatmap"):
            for theme in ("light", "dark"):
                axes = getattr(sonde.plot, kind)(["loss", "max:loss"], where, theme=theme, size=(5, 4))
                for suffix in ("png", "svg", "pdf"):
                    path = self.root / f"x.{suffix}"
                    sonde.plot.save(axes[0].figure, path)
                pyplot.close(axes[0].figure)
                data = (self.root / "x.png").read_bytes()
                self.assertTrue(is_png(data))
                self.assertEqual(struct.unpack(">II", data[16:24]), (500, 400))
                self.assertEqual(xml.etree.ElementTree.parse(self.root / "x.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg")
                pdf = (self.root / "x.pdf").read_bytes()
                self.assertTrue(pdf.startswith(b"%PDF-1.") and pdf.rstrip().endswith(b"%%EOF"))
        self.assertEqual((self.root / "command.PNG").read_bytes(), (self.root / "command.png").read_bytes())
        self.assertEqual(sorted(p.name for p in self.root.iterdir() if p.name.startswith(".sonde-")), [])

    def test_options_are_arguments(self):
        """An option of the command has the effect of the function's argument."""
        spans = [f"span {(T + 1000 * i) * MS} {(T + 1000 * i + 900) * MS} epoch number={i}" for i in range(4)]
        where = self.record("a", [("loss", T + 100 * i, i, f"rank={i % 2}") for i in range(40)], spans)
        plain = self.root / "plain.svg"
        for kind, options, arguments in (
            ("lines", ("--from-start",), {"from_start": True}),
            ("lines", ("--mark-spans", "epoch"), {"mark_spans": "epoch"}),
            ("lines", ("--per-span", "epoch", "--downsample", "max"), {"per_span": "epoch", "downsample": "max"}),
            ("lines", ("--theme", "dark", "--title", "a title"), {"theme": "dark", "title": "a title"}),
            ("boxes", ("--by", "rank"), {"by": ["rank"]}),
            ("boxes", ("--every", "2"), {"every": 2.0}),
        ):
            with self.subTest(options):
                self.draws(kind, "loss", where, "-o", "command.svg", *options)
                sonde.plot.save(getattr(sonde.plot, kind)("loss", where, **arguments).figure, self.root / "function.svg")
                self.assertEqual((self.root / "command.svg").read_text(), (self.root / "function.svg").read_text())
                sonde.plot.save(getattr(sonde.plot, kind)("loss", where).figure, plain)
                self.assertNotEqual((self.root / "command.svg").read_text(), plain.read_text())

    def test_no_half_files(self):
        where = self.record("a", [("loss", T + 1000 * i, i, "") for i in range(50)])
        self.one_line(self.plot("lines", "loss", where, "-o", "nowhere/x.png"), 1, "cannot write nowhere/x.png: No such file or directory")
        self.one_line(self.plot("lines", "loss", where, "-o", "x.gif"), 2, "x.gif: the name of a picture ends with .png, .svg or .pdf")
        (self.root / "folder.png").mkdir()
        self.one_line(self.plot("lines", "loss", where, "-o", "folder.png"), 1, "folder.png is no regular file")
        self.draws("lines", "loss", where, "-o", "x.png")
        before = (self.root / "x.png").read_bytes()
        # The file may have 2,000 bytes, but the picture needs more.
        env = {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}", "SONDE_PYTHON": sys.executable}
        result = self.sonde("plot", "lines", "loss", where, "-o", "x.png", env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
        self.one_line(result, 1, "cannot write x.png: File too large")
        self.assertEqual((self.root / "x.png").read_bytes(), before)
        self.assertEqual([p.name for p in self.root.iterdir() if p.name.startswith(".sonde-")], [])

    def test_a_running_job_and_its_recording(self):
        """Accepts the same targets as `sonde query`: nothing, id, name, last, address, path."""
        go = self.root / "go"
        job = self.start("run", "-q", "-l", "1", "--name", "training", "--", "sh", "-c",
                         f"for i in 1 2 3; do echo loss 0.$i {T}00$i | sonde put; done; sonde plot lines loss -o inside.svg; touch {self.root}/ready; until [ -e {go} ]; do sleep 0.05; done",
                         env={"SONDE_JOB": "j", "PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}", "SONDE_PYTHON": sys.executable})
        until(lambda: (self.root / "ready").exists(), "the job plots")
        url = self.job()["url"]
        pictures = []
        for at, words in enumerate(([], ["j"], ["training"], [url], ["--job", "j"])):
            self.draws("lines", "loss", *words, "-o", f"live{at}.svg", "--title", "loss")
            pictures.append((self.root / f"live{at}.svg").read_text())
        go.touch()
        self.assertEqual(self.ends(job)[0], 0)
        self.draws("lines", "loss", "last", "-o", "last.svg", "--title", "loss")
        self.assertEqual(set(pictures), {(self.root / "last.svg").read_text()}, "live and recorded pictures are the same")
        self.assertIn("<svg", (self.root / "inside.svg").read_text())


@unittest.skipUnless(HERE, "Matplotlib is not here")
class Documented(Plots):
    def test_the_examples_of_the_page(self):
        spans = [f"span {(T + 1000 * i) * MS} {(T + 1000 * i + 900) * MS} epoch number={i}" for i in range(4)]
        points = [(name, T + 100 * i, i / 100, f"rank={rank}") for name in ("loss", "cpu_percent") for rank in range(3) for i in range(40)]
        self.record("one", points, spans, name="before")
        self.record("two", points, spans, name="after")
        page = (pathlib.Path(os.environ["SOURCE"]) / "docs/plot.md").read_text()
        (shell,) = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
        (python,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
        env = self.env | {"PYTHONPATH": f"{os.environ['PACKAGE']}:{os.environ.get('PYTHONPATH', '')}", "SONDE_PYTHON": sys.executable}
        for words in (["sh", "-e", "-c", shell], [sys.executable, "-c", python]):
            result = subprocess.run(words, env=env, cwd=self.root, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
        wanted = {*re.findall(r"-o (\S+)", shell), *re.findall(r'"(\w+\.svg)"', python)}
        self.assertEqual({path.name for path in self.root.iterdir() if path.suffix in (".png", ".svg", ".pdf")}, wanted)


class Notebook(Plots):
    def test_html_is_whole_and_escaped(self):
        bad = "<script>&\"'"
        lines = [f"span {T * MS} {(T + 900) * MS} a<b>&c number=<i>", "note <u>now</u>&"]
        where = self.record("a", [("loss", T + 100 * i, i, "rank=<b>1</b>&") for i in range(40)], lines, name="a&b")
        with sonde.AnalysisClient(where) as client:
            shown = {"result": client.query("loss"), "spans": client.spans(), "run": client}
            for name, what in shown.items():
                with self.subTest(name):
                    page = Tags(what._repr_html_())
                    self.assertLessEqual(page.names, {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "strong", "img"})
                    self.assertEqual(len(page.images), int(HERE and name != "run"))
            self.assertIn("rank=<b>1</b>&", "".join(Tags(shown["result"]._repr_html_()).texts))
            self.assertIn("a<b>&c", Tags(shown["spans"]._repr_html_()).texts)
            self.assertIn("a&b", Tags(client._repr_html_()).texts)
            self.assertEqual(client.spans(), list(client.spans()))
            empty = client.query("loss", tags={"rank": bad})
            self.assertEqual(Tags(empty._repr_html_()).images, [])
            self.assertEqual(Tags(client.spans("nope")._repr_html_()).images, [])
        from sonde import _notebook

        self.assertEqual(Tags(_notebook._missing(bad)).texts[-1].strip(), bad)

    def test_long_tables_are_counted(self):
        where = self.record("a", [("loss", T, rank, f"rank={rank}") for rank in range(30)])
        with sonde.AnalysisClient(where) as client:
            page = Tags(client.query("loss")._repr_html_())
        self.assertIn("… and 18 more series", page.texts)


if __name__ == "__main__":
    main()
