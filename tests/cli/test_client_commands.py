"""Query commands: the target that they choose, the lists that they print besides points, and their
messages for unknown names."""

import csv
import io
import json
import os
import sys

from place import Place, main, until

LIBRARY, EMITTER = os.environ["SONDE_LIBRARY"], os.environ["FORMAT_EMITTER"]
START = 1795173000


class Ask(Place):
    def record(self, job, stdin):
        result = self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=stdin, env={"SONDE_JOB": job})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def emit(self, job, lines, puts=""):
        """Emits spans, which no line protocol accepts, and lines for `sonde put`."""
        file, points = self.root / "lines", self.root / "puts"
        file.write_text("".join(line + "\n" for line in lines))
        points.write_text(puts)
        result = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", f"sonde put < {points} && {sys.executable} {EMITTER} {LIBRARY} < {file}", env={"SONDE_JOB": job})
        self.assertEqual(result.returncode, 0, result.stderr)

    def ask(self, *arguments, env=None, code=0):
        result = self.sonde("query", *arguments, env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout

    def said(self, *arguments, env=None, code=0):
        """Returns the output on stderr, without the line about the target."""
        result = self.sonde("query", *arguments, env=env)
        self.assertEqual(result.returncode, code, result.stderr)
        return "".join(line + "\n" for line in result.stderr.splitlines() if not line.startswith(("sonde: recording ", "sonde: running job ")))

    def host(self):
        return os.uname().nodename.split(".")[0]


class Targets(Ask):
    def test_several_jobs_carry_the_tag_job(self):
        for job, value in (("one", 1), ("two", 2)):
            self.record(job, f"put loss {START} {value}\n")
        for where in (["one", "two"], [self.runs], [self.runs / "one", "two"]):
            found = json.loads(self.ask("loss", "--json", *where))
            self.assertEqual([(s["tags"]["job"], list(s["dps"].values())) for s in found], [("one", [1]), ("two", [2])], where)
            self.assertEqual({s["tags"]["job"] for s in json.loads(self.ask("--list", "--json", *where))}, {"one", "two"})
        (two,) = json.loads(self.ask("loss{job=two}", "--json", self.runs))
        self.assertEqual(two["tags"], {"host": self.host(), "job": "two"})
        (one,) = json.loads(self.ask("loss", "--json", "--job", "one"))
        self.assertNotIn("job", one["tags"])

    def live(self, job="live"):
        """Starts a job. Returns it, and the environment of a remote user who has its address and
        its token."""
        self.start("run", "-q", "-l", "1", "--", "sh", "-c", "sonde put loss 0.5; exec sleep 1000", env={"SONDE_JOB": job})
        until(lambda: self.job()["points"] == 1, "the point of the job")
        found = self.job()
        elsewhere = self.root / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        return found, {"TMPDIR": str(elsewhere), "SONDE_RUNS": str(elsewhere), "SONDE_URL": found["url"], "SONDE_TOKEN_FILE": found["token_file"]}

    def test_from_elsewhere(self):
        job, env = self.live()
        self.assertEqual(self.sonde("annotate", "rate halved", "rank=3", env=env).returncode, 0)
        self.assertEqual([s["dps"] for s in json.loads(self.ask("loss", "--json", env=env))], [s["dps"] for s in json.loads(self.ask("loss", "--json"))])
        (note,) = json.loads(self.ask("--annotations", "--json", env=env))
        self.assertEqual((note["text"], note["tags"]["rank"]), ("rate halved", "3"))
        (shown,) = json.loads(self.sonde("status", "--json", env=env).stdout)
        self.assertEqual((shown["job"], shown["points"], [n["host"] for n in shown["nodes"]]), ("live", 1, [self.host()]))
        self.assertIn("live", self.sonde("status", env=env).stdout)
        self.assertEqual(self.sonde("detect", "loss", env=env).returncode, 0)
        dumped = self.sonde("dump", "--to", self.root / "copy", "--json", env=env)
        self.assertEqual((dumped.returncode, json.loads(dumped.stdout)["files"][0]["points"]), (0, 1), dumped.stderr)

    def test_a_title(self):
        self.start("run", "-q", "-l", "1", "--title", "the weekly\033[31m training", "--", "sleep", "1000")
        self.assertEqual(self.job()["command"], "the weekly\033[31m training")
        self.assertIn("the weekly\\x1b[31m training", self.sonde("status").stdout)

    def test_a_pasted_address(self):
        job, env = self.live()
        del env["SONDE_URL"], env["SONDE_TOKEN_FILE"]
        for url in (job["url_with_token"], job["url_with_token"] + "#x"):
            self.assertEqual([list(s["dps"].values()) for s in json.loads(self.ask("loss", "--json", url, env=env))], [[0.5]])
            self.assertEqual(self.sonde("detect", "loss", url, env=env).returncode, 0)
        self.record("past", f"put loss {START} 7\n")
        both = json.loads(self.ask("loss", "--json", job["url_with_token"], self.runs / "past", env=env))
        self.assertEqual([(s["tags"]["job"], list(s["dps"].values())) for s in both], [("live", [0.5]), ("past", [7])])

    def test_after_the_job_its_recording(self):
        job, _ = self.live()
        self.started[0].terminate()
        self.ends(self.started[0])
        env = {"SONDE_URL": job["url"], "SONDE_TOKEN_FILE": job["token_file"], "SONDE_JOB": "live"}
        result = self.sonde("query", "loss", "--json", env=env)
        self.assertEqual((result.returncode, result.stderr, list(json.loads(result.stdout)[0]["dps"].values())), (0, "sonde: recording live\n", [0.5]))

    def test_what_is_missing(self):
        self.record("known", f"put loss {START} 1\n")
        (self.runs / "known" / "zzz.sonde").write_text("x" * 10000)
        for more, code in (([], 0), (["--strict"], 4)):
            for question in (["loss"], ["--list"], ["--tags", "loss"], ["--spans"], ["--annotations"]):
                self.assertIn("sonde: missing in the answer: zzz.sonde (unreadable: ", self.said(*question, "known", *more, code=code))
            self.assertEqual(self.sonde("detect", "loss", "known", *more).returncode, code)

    def test_ids_that_are_not_there(self):
        self.record("training", f"put loss {START} 1\n")
        self.one_line(self.sonde("query", "loss", "--job", "trainin"), 1, "there is no job trainin, neither running nor recorded; recorded: training; did you mean training?")
        self.one_line(self.sonde("query", "loss", "training2"), 1, "'training2' is not a file, folder, job or address; recorded: training; did you mean training?")
        self.one_line(self.sonde("detect", "loss", env={"SONDE_JOB": "xyzzy"}), 1, "there is no job xyzzy", "recorded: training")


class Explained(Ask):
    def setUp(self):
        super().setUp()
        self.record("known", "".join(f"put loss {START} {rank} rank={rank}\n" for rank in (0, 2, 10)))

    def test_tags_that_a_metric_does_not_have(self):
        self.assertEqual(json.loads(self.ask("loss{rnak=1}", "--json", "known")), [])
        self.assertIn("no series of loss has the tag rnak (did you mean rank?); they have host, rank\n", self.said("loss{rnak=1}", "known"))
        self.assertIn("no series of loss has the tag gpu; they have host, rank\n", self.said("sum:loss{gpu=*}", "--csv", "known"))
        self.assertIn("no series of loss has the tag gpu; they have host, rank\n", self.sonde("detect", "--by", "gpu,x", "avg:1s-avg:loss{gpu=*}", "known").stderr)

    def test_values_that_a_tag_does_not_have(self):
        self.assertIn("no series of loss has rank=3; it is 0, 2, 10\n", self.said("loss{rank=3}", "known"))
        self.assertIn(f"no series of loss has host=nowhere; it is {self.host()}\n", self.said("loss{host=nowhere}", "known"))
        self.assertEqual(self.said("loss{rank=2}", "known"), "")
        self.assertNotIn("no series", self.said("loss{rank=2}", "known", "--start", str(START + 100)))


class Lists(Ask):
    def setUp(self):
        super().setUp()
        self.emit("known", [f"span {(START + i) * 10**9} {(START + i) * 10**9 + 2 * 10**9} step rank={rank}" for i, rank in enumerate((10, 2, 9))] + ["begin other rank=1"])

    def rows(self, text):
        return list(csv.reader(io.StringIO(text)))

    def test_spans(self):
        table = self.ask("--spans=step", "known").splitlines()
        self.assertRegex(table[0], r"^span +start +seconds +node +tags$")
        self.assertRegex(table[1], rf"^step +2026-11-20 11:10:00.000 +2.000 +{self.host()} +host={self.host()},rank=10$")
        self.assertEqual([row[4].split("rank=")[1] for row in self.rows(self.ask("--spans=step", "--csv", "known"))[1:]], ["10", "2", "9"])
        spans = json.loads(self.ask("--spans", "--json", "known"))
        self.assertEqual([(s["name"], s["tags"]["rank"]) for s in spans], [("step", "10"), ("step", "2"), ("step", "9"), ("other", "1")])
        self.assertEqual((spans[0]["start_ns"], spans[0]["end_ns"]), (START * 10**9, (START + 2) * 10**9))
        self.assertEqual(len(json.loads(self.ask("--spans", "--json", "--start", str(START + 3), "--end", str(START + 4), "known"))), 2)
        self.assertEqual(self.said("--spans=none", "known"), "sonde: there are no spans in this range\n")

    def test_annotations(self):
        self.start("run", "-q", "-l", "1", "--", "sh", "-c", "sonde annotate 'a, b' 'tag=x\033[31m'; exec sleep 1000")
        until(lambda: self.job()["nodes"] and json.loads(self.ask("--annotations", "--json")), "the annotation")
        (note,) = json.loads(self.ask("--annotations", "--json"))
        self.assertEqual((note["text"], note["tags"]["tag"]), ("a, b", "x\033[31m"))
        for form in ([], ["--csv"], ["--json"]):
            self.assertNotIn("\033", self.ask("--annotations", *form))
        (tags, text) = self.rows(self.ask("--annotations", "--csv"))[1][2:]
        self.assertEqual((sorted(tags.split(",")), text), ([f"host={self.host()}", "tag=x\\x1b[31m"], "a, b"))

    def test_tags(self):
        self.record("tagged", "".join(f"put loss {START} 1 rank={rank}\n" for rank in range(12)))
        self.assertRegex(self.ask("--tags", "loss", "tagged"), rf"^tag +values +examples\nhost +1  {self.host()}\nrank +12  0, 1, 2, 3, 4\n$")
        host, rank = json.loads(self.ask("--tags", "loss", "--json", "tagged"))
        self.assertEqual((rank["key"], rank["values"], rank["examples"]), ("rank", 12, ["0", "1", "2", "3", "4"]))
        self.assertEqual(self.rows(self.ask("--tags", "loss", "--csv", "tagged")), [["tag", "values", "examples"], ["host", "1", self.host()], ["rank", "12", "0, 1, 2, 3, 4"]])
        self.one_line(self.sonde("query", "--tags", "los", "tagged"), 1, "no metric 'los'", "did you mean loss?")

    def test_one_question_at_a_time(self):
        self.one_line(self.sonde("query", "--list", "--spans", "known"), 2, "choose one of --list")

    def test_per_span_by_time_then_naturally(self):
        begins = {10: START, 2: START, 1: START, 11: START - 5}
        self.emit("ranks", [f"span {begin * 10**9} {(begin + 2) * 10**9} epoch rank={rank}" for rank, begin in begins.items()],
                  "".join(f"put loss {begin + 1} {rank} rank={rank}\n" for rank, begin in begins.items()))
        question = ("--per-span=epoch", "none:0all-max:loss", "ranks")
        self.assertEqual([s["tags"]["rank"] for s in json.loads(self.ask("--json", *question))], ["11", "1", "2", "10"])
        self.assertEqual([row[2] for row in self.rows(self.ask("--csv", *question))[1:]], ["11", "1", "2", "10"])


class Top(Ask):
    """`sonde top` chooses its target like the other commands."""

    def test_spans_of_any_id(self):
        """Ids have 64 bits: of sixteen programs, some have the highest bit set."""
        programs, lines = 16, self.root / "lines"
        lines.write_text(f"span {START * 10**9} {(START + 2) * 10**9} step\npoint loss {(START + 1) * 10**9} {0:x}\n")
        emit = f"for i in $(seq {programs}); do {sys.executable} {EMITTER} {LIBRARY} < {lines}; done"
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", emit, env={"SONDE_JOB": "many"}).returncode, 0)
        shown = self.sonde("top", "--once", "--show", "events", "many")
        self.assertEqual((shown.returncode, shown.stdout.count("1.0s step")), (0, programs), shown.stderr + shown.stdout)

    def test_who_is_missing(self):
        self.record("cut", f"put loss {START} 1\n")
        (self.runs / "cut" / "z.sonde").write_bytes(b"no recording" * 100)
        shown = self.sonde("top", "--once", "cut")
        self.assertIn("1 missing: z.sonde (unreadable", shown.stdout, shown.stderr)


if __name__ == "__main__":
    main()
