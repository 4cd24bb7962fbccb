"""`sonde ls`, `rm`, `mv`, `merge` and `prune`, the description of a run, and runs by name."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from place import Place, main, until

COMMANDS = ["train.py --lr 0.1", "true", "mpirun -n 4 solver", "train.py 'a b'"]
DAY_NS = 86400 * 10**9


class Kept(Place):
    def run_json(self):
        (job,) = self.recordings()
        return json.loads((self.runs / job / "run.json").read_text())

    def test_what_the_user_says(self):
        env = {"OMP_NUM_THREADS": "8", "NCCL_DEBUG": "INFO", "HF_TOKEN": "secret", "NCCL_KEY": "secret", "EDITOR": "vi", "LOADEDMODULES": "gcc/13:openmpi/5"}
        env |= {name: "" for name in os.environ if name.startswith(("OMP_", "CUDA_", "HSA_"))}
        done = self.sonde("run", "--name", "base line", "--tag", "lr=0.1", "--tag=opt=a=b", "--note", "larger\tbatches", "--tag", "lr=0.2", "true", env=env | {"OMP_NUM_THREADS": "8"})
        self.assertEqual(done.returncode, 0, done.stderr)
        about = self.run_json()["about"]
        self.assertEqual({k: about[k] for k in ("name", "note", "tags", "nodes", "directory", "modules")},
                         {"name": "base line", "note": "larger\tbatches", "tags": {"lr": "0.2", "opt": "a=b"}, "nodes": 1, "directory": str(self.root), "modules": ["gcc/13", "openmpi/5"]})
        self.assertEqual({k: v for k, v in about["environment"].items() if k.startswith(("OMP", "NCCL", "HF", "EDITOR"))}, {"OMP_NUM_THREADS": "8", "NCCL_DEBUG": "INFO"})
        self.assertNotIn("secret", json.dumps(self.run_json()))

    def test_the_environment_and_the_file_name_a_run(self):
        (self.root / "sonde.yaml").write_text("name: of the file\nnote: a note\n")
        self.assertEqual(self.sonde("run", "-q", "-c", "sonde.yaml", "true").returncode, 0)
        self.assertEqual((self.run_json()["about"]["name"], self.run_json()["about"]["note"]), ("of the file", "a note"))
        shutil.rmtree(self.runs)
        self.assertEqual(self.sonde("run", "-q", "-c", "sonde.yaml", "true", env={"SONDE_NAME": "of the environment"}).returncode, 0)
        self.assertEqual(self.run_json()["about"]["name"], "of the environment")

    def git(self, *arguments, where=None):
        who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        return subprocess.run(["git", "-C", str(where or self.root / "source"), *arguments], env=self.env | who, check=True, capture_output=True, text=True).stdout.strip()

    def seen(self, where):
        """Returns the recorded facts about the work tree in which a run was started."""
        shutil.rmtree(self.runs, ignore_errors=True)
        done = subprocess.run(["sonde", "run", "-q", "-l", "1", "true"], cwd=where, env=self.env, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.run_json()["about"].get("git")

    @unittest.skipUnless(shutil.which("git"), "git is not installed here")
    def test_the_commit(self):
        source = self.root / "source"
        (source / "deep" / "er").mkdir(parents=True)
        self.assertIsNone(self.seen(source))
        self.git("init", "-q", "-b", "main")
        self.assertIsNone(self.seen(source))  # no commit yet
        self.git("commit", "-q", "--allow-empty", "-m", "first")
        first = self.git("rev-parse", "HEAD")
        for where in (source, source / "deep" / "er"):
            self.assertEqual(self.seen(where), {"commit": first, "branch": "main"})
        self.git("checkout", "-q", "-b", "topic/deep")
        self.git("commit", "-q", "--allow-empty", "-m", "second")
        second = self.git("rev-parse", "HEAD")
        self.git("pack-refs", "--all")
        self.assertEqual(self.seen(source), {"commit": second, "branch": "topic/deep"})
        self.git("checkout", "-q", "--detach", first)
        self.assertEqual(self.seen(source), {"commit": first})
        self.git("worktree", "add", "-q", str(self.root / "other"), "main")
        self.assertEqual(self.seen(self.root / "other"), {"commit": first, "branch": "main"})

    def test_a_git_folder_that_is_none(self):
        source = self.root / "source"
        (source / ".git").mkdir(parents=True)
        for text in (b"", b"ref: ", b"ref: refs/heads/none", b"\0" * 50, b"ref: " + b"x" * 5000, b"not a commit", b"g" * 40):
            (source / ".git" / "HEAD").write_bytes(text)
            self.assertIsNone(self.seen(source), text)
        (source / ".git" / "HEAD").unlink()
        os.mkfifo(source / ".git" / "HEAD")
        self.assertIsNone(self.seen(source))
        shutil.rmtree(source / ".git")
        for text in ("gitdir: ", "gitdir: /nowhere", "no link", ""):
            (source / ".git").write_text(text)
            self.assertIsNone(self.seen(source), text)

    def test_mistakes(self):
        for arguments, words in {
            ("--tag", "lr"): ("--tag", "is not KEY=VALUE"),
            ("--tag", "=1"): ("is not KEY=VALUE",),
            ("--tag", "a b=1"): ("a character other than",),
            ("--tag", "exit=1"): ("exit is a column of sonde ls already",),
            ("--tag", "x" * 65 + "=1"): ("at most 64 bytes",),
            ("--tag", "a=\x1b[2J"): ("not printable text",),
            ("--name", "a/b"): ("--name", "no '/'"),
            ("--name", "last"): ("newest recording",),
            ("--name", "x" * 65): ("1 to 64 bytes",),
        }.items():
            self.one_line(self.sonde("run", *arguments, "--", "true"), 2, *words)
        many = [word for i in range(33) for word in ("--tag", f"k{i}=1")]
        self.one_line(self.sonde("run", *many, "--", "true"), 2, "at most 32 tags")
        self.assertFalse(self.runs.exists())


class Parameters(Place):
    """`sonde put --parameters`, and the places that show its parameters."""

    def config(self):
        (job,) = self.recordings()
        return json.loads((self.runs / job / "run.json").read_text())["about"].get("config")

    def columns(self, columns, *more):
        done = self.sonde("ls", "--csv", "--columns", columns, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()[1:]

    def test_while_it_runs_and_afterwards(self):
        run = self.start("run", "-q", "-l", "1", "--tag", "opt=of the tag", "--", "sh", "-c", "sonde put --parameters lr=0.1 'opt=a b\\c' size=7 && sonde put --parameters lr=0.01 empty= && "
                         f"touch {self.root}/put; until [ -e {self.root}/end ]; do sleep 0.05; done")
        until((self.root / "put").exists, "parameters")
        expected = {"lr": "0.01", "opt": "a b\\c", "size": "7", "empty": ""}
        job = self.job()
        self.assertEqual(job["config"], expected)
        self.assertIn(f"{job['job']}: lr=0.01 opt=a b\\c size=7 empty=\n", self.sonde("status").stdout)
        rows = self.columns("lr,opt,config.opt,config.size")
        self.assertEqual(rows, [f"{job['job']},0.01,of the tag,a b\\c,7"])
        (self.root / "end").touch()
        self.ends(run)
        self.assertEqual(self.config(), expected)
        self.assertEqual(self.columns("lr,opt,config.opt,config.size"), rows)
        self.assertEqual(self.columns("lr", "--where", "lr<0.02"), [f"{job['job']},0.01"])
        self.assertEqual(self.columns("lr", "--where", "lr<0.01"), [])
        self.one_line(self.sonde("ls", "--columns", "+lrr"), 1, "did you mean lr?")

    def test_many(self):
        """More parameters than one annotation can hold: all of them are there or, beyond the
        limits, their count."""
        words = [f"key{i}={'x' * 40}{i}" for i in range(1000)]
        done = self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", "--parameters", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.config(), dict(word.split("=") for word in words))
        self.assertEqual(self.sonde("rm", *self.recordings()).returncode, 0)
        script = "for i in 1 2 3; do sonde put --parameters $(seq -f \"$i.%g=1\" 1000); done"
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", script).returncode, 0)
        (job,) = self.recordings()
        about = json.loads((self.runs / job / "run.json").read_text())["about"]
        self.assertEqual((len(about["config"]), about["config_lost"]), (1024, 3000 - 1024))

    def test_a_launcher_that_is_killed(self):
        """The files of a killed `sonde run` have the parameters before and after the cleanup."""
        run = self.start("run", "-q", "-l", "1", "--", "sh", "-c", f"sonde put --parameters lr=0.1; touch {self.root}/put; exec sleep 1000")
        until((self.root / "put").exists, "parameters")
        os.kill(run.pid, 9)
        self.ends(run)
        until(lambda: not self.alive(), "the command's and the agent's end")
        self.assertEqual([row.split(",")[1] for row in self.columns("lr,state")], ["0.1"])
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--no-record", "true").returncode, 0)
        self.assertEqual(self.config(), {"lr": "0.1"})

    def test_over_http(self):
        script = 'env -u SONDE_SOCKET -u SONDE_JOB SONDE_URL=$SONDE_URL sonde put --parameters lr=0.1 "opt=a b"'
        done = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.config(), {"lr": "0.1", "opt": "a b"})

    def test_mistakes(self):
        for words, why in {(): "a parameter is missing", ("lr",): "'lr' is not a parameter", ("=1",): "'=1' is not a parameter", ("a b=1",): "is not a parameter", ("a" * 129 + "=1",): "is not a parameter",
                           ("a=" + "x" * 1025,): "the value of a has more than 1024 bytes"}.items():
            self.one_line(self.sonde("put", "--parameters", *words), 2, why)


class MadeUp(Place):
    def made_up(self, number, **more):
        """Makes a run as a launcher leaves it, without a recording."""
        folder = self.runs / f"job{number}"
        folder.mkdir(parents=True)
        start_ns = 10**18 + number * DAY_NS
        run = {"format": "sonde run 1", "job": folder.name, "host": "n1", "command": "true", "level": 2}
        run |= {"start_ns": start_ns, "end_ns": start_ns + 10**9, "exit_code": 0}
        (folder / "run.json").write_text(json.dumps(run | more))
        return folder

    def ls(self, *arguments):
        done = self.sonde("ls", "--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return json.loads(done.stdout)

    def jobs(self, *arguments):
        return [run["job"] for run in self.ls(*arguments)]


class Table(MadeUp):
    def test_random_tables(self):
        """Runs, conditions and orders from a seed, compared with the same computation in Python."""
        seed = int(os.environ.get("SONDE_TEST_SEED", "1"))
        print(f"SONDE_TEST_SEED={seed}", flush=True)
        draw = random.Random(seed)
        runs = []
        for number in range(30):
            tags = {key: draw.choice(values) for key, values in {"lr": ["0.1", "0.01", "1e-3", "10"], "opt": ["adam", "sgd", "10x"]}.items() if draw.random() < 0.8}
            run = {"exit_code": draw.choice([0, 0, 1, 137]), "end_ns": 10**18 + number * DAY_NS + draw.randrange(1, 5) * 60 * 10**9, "command": draw.choice(COMMANDS), "level": draw.randrange(1, 5)}
            about = {"tags": tags, "nodes": draw.randrange(1, 12)} | ({"name": draw.choice(["one", "two"])} if draw.random() < 0.5 else {})
            self.made_up(number, about=about, **run)
            values = {"job": f"job{number}", "exit": run["exit_code"], "duration": (run["end_ns"] - 10**18 - number * DAY_NS) // 10**9, "command": run["command"], "level": run["level"],
                      "nodes": about["nodes"], "started": 10**9 + number * 86400}
            values |= {"name": about["name"]} if "name" in about else {}
            runs.insert(0, {key: str(value) for key, value in (values | tags).items()})
        for _ in range(40 * int(os.environ.get("SONDE_TEST_ROUNDS", "1"))):
            conditions, wanted = [], lambda run: True
            for _ in range(draw.randrange(3)):
                column, sign = draw.choice(["lr", "opt", "exit", "duration", "nodes", "level", "name", "command", "started"]), draw.choice(["=", "!=", "<", "<=", ">", ">=", "~"])
                value = draw.choice(runs).get(column, "3")
                if sign == "~" and column in ("duration", "started"):
                    continue  # these have another display format
                in_minutes = column == "duration" and draw.random() < 0.5
                conditions.append(f"{column}{sign}{int(value) / 60:g}m" if in_minutes else f"{column}{sign}{value}")
                wanted = self.both(wanted, column, sign, value)
            order = draw.choice([["-started"], ["lr"], ["-lr"], ["name", "-nodes"], ["-opt", "lr", "exit"]])
            expected = [run for run in runs if wanted(run)]
            for column in reversed(order):
                plain, down = column.lstrip("-"), column.startswith("-")
                have = sorted((run for run in expected if plain in run), key=lambda run, plain=plain: self.key(run[plain]), reverse=down)
                if down:  # equal rows keep their order
                    groups = {}
                    for run in (run for run in expected if plain in run):
                        groups.setdefault(self.key(run[plain]), []).append(run)
                    have = [run for key in sorted(groups, reverse=True) for run in groups[key]]
                expected = have + [run for run in expected if plain not in run]
            arguments = (["--where", ",".join(conditions)] if conditions else []) + ["--sort", ",".join(order)]
            self.assertEqual(self.jobs(*arguments), [run["job"] for run in expected], arguments)

    @staticmethod
    def key(text):
        """Numbers come before texts."""
        try:
            return (0, float(text))
        except ValueError:
            return (1, text)

    def both(self, before, column, sign, value):
        return lambda run: before(run) and column in run and self.holds(run[column], sign, value)

    def holds(self, have, sign, value):
        if sign == "~":
            return value in have
        x, y = self.key(have), self.key(value)
        if x[0] != y[0]:
            x, y = have, value
        return {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]

    def test_columns(self):
        self.made_up(1, about={"tags": {"lr": "0.1"}, "environment": {"OMP_NUM_THREADS": "8"}, "git": {"commit": "a" * 40, "branch": "main"}})
        self.made_up(2, command="x" * 100, exit_code=3)
        usual = self.sonde("ls").stdout.splitlines()
        self.assertEqual(usual[0].split(), ["job", "started", "nodes", "duration", "exit", "size", "tags", "command"])
        cells = usual[2].split()  # the size of run.json depends on the file system
        self.assertEqual(cells[:6] + cells[8:], ["job1", "2001-09-10", "01:46:40", "-", "1.0s", "0", "lr=0.1", "true"])
        self.assertTrue(usual[1].endswith(" " + "x" * 60 + "…"))
        few = self.sonde("ls", "--columns", "lr,OMP_NUM_THREADS,commit,branch,exit", "--csv").stdout.splitlines()
        self.assertEqual(few, ["job,lr,OMP_NUM_THREADS,commit,branch,exit", "job2,,,,,3", f"job1,0.1,8,{'a' * 40},main,0"])
        self.assertEqual(self.sonde("ls", "--columns", "+lr", "job1").stdout.split()[:9], ["job", "started", "nodes", "duration", "exit", "size", "tags", "command", "lr"])
        self.assertEqual(self.jobs("--where", "started<2001/09/11-00:00:00"), ["job1"])
        self.assertEqual(self.jobs("--where", "started>1d-ago"), [])
        self.assertEqual(self.sonde("ls", "--where", "exit=9").stdout, "no run fulfils the conditions\n")

    def test_statistics_of_metrics(self):
        for name, values in {"low": (1, 2, 6), "high": (50, 40), "none": ()}.items():
            lines = "".join(f"put loss {1700000000 + i} {value} rank={i % 2}\n" for i, value in enumerate(values))
            self.assertEqual(self.sonde("run", "-q", "-l", "1", "--name", name, "sh", "-c", f"printf '%s' '{lines}' | sonde put").returncode, 0)
        columns = [f"loss.{what}" for what in ("min", "max", "mean", "sum", "count", "last")]
        runs = {run["name"]: [run.get(column) for column in columns] for run in self.ls("--columns", ",".join(["name", *columns]))}
        self.assertEqual(runs, {"low": [1, 6, 3, 9, 3, 6], "high": [40, 50, 45, 90, 2, 40], "none": [None] * 6})
        self.assertEqual([run["name"] for run in self.ls("--sort", "-loss.last", "--where", "loss.count>0")], ["high", "low"])

    def test_a_run_that_runs(self):
        process = self.start("run", "-q", "--name", "now", "--tag", "lr=1", "sh", "-c", "sonde put loss 7; exec sleep 1000")
        until(lambda: [run.get("loss.last") for run in self.ls("--columns", "loss.last")] == [7], "the job runs and has a point")
        (run,) = self.ls()
        self.assertEqual((run["state"], run["name"], run["nodes"], "exit" in run), ("running", "now", 1, False))
        row = self.sonde("ls", "now").stdout.splitlines()[1].split()
        self.assertIn("runs", row)
        self.one_line(self.sonde("rm", "now"), 1, "it is no recording yet")
        answer = json.loads(self.sonde("query", "--json", "loss", "now").stdout)
        self.assertEqual([list(s["dps"].values()) for s in answer], [[7]])
        process.terminate()
        process.wait()
        (run,) = self.ls("now")
        self.assertEqual((run["state"], run["exit"]), ("ended", 143))

    def test_mistakes(self):
        self.made_up(1, about={"tags": {"learning_rate": "0.1"}})
        for arguments, code, words in (
            (["--where", "lr"], 2, ["is not a condition"]),
            (["--where", "a!b"], 2, ["is not a condition"]),
            (["--where", ",".join(["exit=0"] * 17)], 2, ["more than 16 conditions"]),
            (["--where", "duration<x"], 2, ["is no duration"]),
            (["--where", "size<x"], 2, ["is no size"]),
            (["--where", "started<x"], 2, ["is no time"]),
            (["--where", "learning_rat=1"], 1, ["did you mean learning_rate?"]),
            (["--sort", "durations"], 1, ["did you mean duration?"]),
            (["--columns", "nothing.at.all"], 1, ["it is not a column, tag, parameter or statistic"]),
            (["--json", "--csv"], 2, ["choose one"]),
            (["job"], 1, ["no run is called job; did you mean job1?"]),
        ):
            self.one_line(self.sonde("ls", *arguments), code, *words)
        self.one_line(self.sonde("rm"), 2, "name the runs to remove")

    def test_strange_files(self):
        """Files from an editor or another version are skipped, or shown as far as they are
        known."""
        self.made_up(1, about=[1, 2], exit_code="x")
        self.made_up(2, about={"tags": {"lr": 3, "x": [1]}, "nodes": "many", "name": {}})
        (self.made_up(3) / "run.json").write_text("{")
        (self.made_up(4) / "run.json").write_bytes(b"\xff\xfe")
        (self.made_up(5) / "run.json").write_text('{"format": "sonde run 2"}')
        (self.made_up(6) / "run.json").write_text("")
        (self.runs / "empty").mkdir()
        for more, code in (((), 0), (("--strict",), 4)):
            done = self.sonde("ls", "--json", *more)
            self.assertEqual([run["job"] for run in json.loads(done.stdout)], ["job2", "job1"])
            self.assertEqual(done.returncode, code)
            self.assertEqual(sorted(done.stderr.splitlines()), [
                *(f"sonde: left out: {self.runs}/job{i}/run.json is {why}" for i, why in ((3, "not a file of sonde"), (4, "not a file of sonde"), (5, "of a newer version of sonde"), (6, "not a file of sonde")))])
        self.assertEqual([run["job"] for run in json.loads(self.sonde("ls", "--json", "--where", "lr=3").stdout)], ["job2"])
        self.assertEqual(self.sonde("ls", "--columns", "tags", "--csv").stdout, "job,tags\njob2,lr=3\njob1,\n")


class Removing(MadeUp):
    def test_rm(self):
        folders = [self.made_up(i, about={"name": name}, exit_code=i) for i, name in enumerate(["a", "b", "b", "train-1", "train-2", "c"])]
        self.made_up(6, keep=True)
        self.one_line(self.sonde("rm", "b"), 2, "2 runs are called b")
        self.one_line(self.sonde("rm", "a", "nobody"), 1, "no run is called nobody")
        self.assertTrue(all(folder.exists() for folder in folders))
        self.assertRegex(self.sonde("rm", "--dry-run", "a").stdout, "^would remove job0, .*B\n$")
        self.assertRegex(self.sonde("rm", "a").stdout, "^removed job0, .*B\n$")
        self.assertRegex(self.sonde("rm", "--where", "name=b").stdout, "^removed job2, .*B\nremoved job1, .*B\n$")
        self.assertEqual(self.sonde("rm", "train-*").returncode, 0)
        self.one_line(self.sonde("rm", "job6"), 1, "job6 stays", "--force")
        self.assertEqual(self.jobs(), ["job6", "job5"])
        self.assertEqual(self.sonde("rm", "--force", "job6", "job5").returncode, 0)
        self.assertEqual(self.sonde("ls").stdout, "there are no runs; start one with sonde run\n")
        self.assertEqual(list(self.runs.iterdir()), [])

    def test_a_name_that_is_an_id(self):
        """An id takes precedence over a name."""
        self.made_up(1)
        self.made_up(2, about={"name": "job1"})
        self.assertEqual(self.jobs("job1"), ["job1"])
        self.assertRegex(self.sonde("rm", "job1").stdout, "^removed job1, .*B\n$")
        self.assertEqual(self.jobs("job1"), ["job2"])

    def test_prune(self):
        old, kept = self.made_up(1), self.made_up(2, keep=True)
        new = self.made_up(3, start_ns=time.time_ns() - 10**9, end_ns=time.time_ns())
        self.assertRegex(self.sonde("prune", "--dry-run").stdout, "^would remove 1 recording, .*B: job1\n$")
        self.assertTrue(old.exists())
        self.assertRegex(self.sonde("prune").stdout, "^removed 1 recording, .*B: job1\n$")
        self.assertEqual(self.sonde("prune").stdout, "nothing to remove\n")
        self.assertEqual([folder.exists() for folder in (old, kept, new)], [False, True, True])

    def test_one_size(self):
        """ls, rm and prune count the same bytes: those that the removal of a run frees."""
        folder = self.made_up(1)
        (folder / "n1.sonde").write_bytes(bytes(100_000))
        (folder / "notes").write_bytes(bytes(70_000))
        (folder / "link.sonde").symlink_to(folder / "notes")
        os.sync()  # so that the system has counted the blocks
        blocks = sum(path.lstat().st_blocks * 512 for path in folder.iterdir() if not path.is_symlink())
        (run,) = self.ls()
        self.assertEqual(run["size"], blocks)
        shown = self.sonde("ls", "--csv", "--columns", "size").stdout.splitlines()[1].split(",")[1]
        self.assertEqual(float(shown), blocks)
        told = [self.sonde(*words).stdout.split(", ")[1].split(":")[0].strip() for words in (("rm", "--dry-run", "job1"), ("prune", "--dry-run", "--runs-age", "1"))]
        self.assertEqual(told[0], told[1])

    def test_names_are_found(self):
        for value in (1, 2):
            self.assertEqual(self.sonde("run", "-q", "-l", "1", "--name", "twice", "sonde", "put", "x", value).returncode, 0)
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--name", "other", "sonde", "put", "x", 3).returncode, 0)
        for where, value in {"twice": 2, "other": 3, "last": 3}.items():
            answer = json.loads(self.sonde("query", "--json", "x", where).stdout)
            self.assertEqual([list(s["dps"].values()) for s in answer], [[value]], where)
            self.assertEqual(self.sonde("inspect", where).returncode, 0)
        self.one_line(self.sonde("query", "x", "nobody"), 1, "'nobody' is not a file, folder, job")
        shutil.rmtree(self.runs)
        self.one_line(self.sonde("query", "x", "last"), 1, "'last' is not a file")


class Moving(MadeUp):
    def record(self, name, value, **env):
        done = self.sonde("run", "-q", "-l", "1", "--name", name, "--", "sonde", "put", "x", str(value), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.ls()[0]

    def values(self, where):
        return sorted(v for s in json.loads(self.sonde("query", "--json", "x", where).stdout) for v in s["dps"].values())

    def test_another_name(self):
        run = self.record("first", 1)
        path = pathlib.Path(run["path"]) / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"of_a_later_version": [1, {"a": 2}]}))
        before = json.loads(path.read_text())
        done = self.sonde("mv", "first", "second one")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "first is called second one now\n", ""))
        self.assertEqual(json.loads(path.read_text()), before | {"about": before["about"] | {"name": "second one"}})
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual((self.values("second one"), self.values(run["job"])), ([1], [1]))
        self.one_line(self.sonde("query", "x", "first"), 1, "'first' is not a file")
        bare = self.made_up(1)  # without facts
        self.assertEqual(self.sonde("mv", "job1", "named").returncode, 0)
        self.assertEqual(json.loads((bare / "run.json").read_text())["about"], {"name": "named"})

    def test_another_folder(self):
        run = self.record("first", 1)
        done = self.sonde("mv", run["job"], "./kept")
        self.assertEqual((done.returncode, done.stdout), (0, f"moved {run['job']} to {self.root}/kept\n"))
        self.assertEqual((self.ls(), self.values(self.root / "kept")), ([], [1]))
        # Moves the run into the folder.
        self.assertEqual(self.sonde("mv", "./kept/", f"{self.runs}/").returncode, 0)
        self.assertEqual([r["path"] for r in self.ls()], [f"{self.runs}/kept"])
        self.assertEqual(self.values("kept"), [1])

    @unittest.skipUnless(os.path.ismount("/dev/shm") and os.access("/dev/shm", os.W_OK), "no other file system here")
    def test_another_file_system(self):
        run = self.record("first", 1)
        other = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, other)
        if other.stat().st_dev == self.runs.stat().st_dev:
            self.skipTest("/dev/shm is the file system of the test")
        (pathlib.Path(run["path"]) / "folder").mkdir()
        self.one_line(self.sonde("mv", "first", f"{other}/x"), 1, "folder is not a file")
        self.assertEqual((os.listdir(other), len(self.ls())), ([], 1))
        (pathlib.Path(run["path"]) / "folder").rmdir()
        files = {path.name: path.read_bytes() for path in pathlib.Path(run["path"]).iterdir()}
        self.assertEqual(self.sonde("mv", "first", f"{other}/x").returncode, 0)
        self.assertEqual(os.listdir(other), ["x"])
        self.assertEqual({path.name: path.read_bytes() for path in (other / "x").iterdir()}, files)
        self.assertFalse(pathlib.Path(run["path"]).exists())

    def test_mistakes(self):
        run = self.record("first", 1)
        (self.root / "there").mkdir()
        (self.root / "there" / run["job"]).mkdir()
        (self.root / "file").write_text("")
        for words, code, said in ((("nobody", "x"), 1, "'nobody' is not a file"), (("first", "last"), 2, "last"), (("first", "./there"), 1, "exists already"), (("first", "./file"), 1, "exists already"),
                                  (("first", "./no/where"), 1, "cannot move"), (("./there", "x"), 1, "has no run.json"), (("first", ""), 2, "name")):
            self.one_line(self.sonde("mv", *words), code, said)
        job = self.start("run", "-q", "-l", "1", "--name", "alive", "--", "sleep", "600")
        until(lambda: self.sonde("query", "--list", "alive").returncode == 0, "the job runs")
        for to in ("x", "./x"):
            self.one_line(self.sonde("mv", "alive", to), 1, "no recording of a run")
        job.terminate()
        self.ends(job)
        self.assertEqual(self.values("first"), [1])


class Merging(MadeUp):
    """Recordings of hosts, made of tables: their job is the folder's import."""

    def recorded(self, folder, host, points, job="one"):
        done = self.sonde("run", "-q", "-l", "1", "--record", folder, "--", "sonde", "put", stdin="".join(f"put x {t} {v}\n" for t, v in points), env={"SONDE_JOB": job})
        self.assertEqual(done.returncode, 0, done.stderr)
        (path,) = (self.root / folder).glob("*.sonde")
        path.rename(path.with_name(f"{host}.sonde"))

    def points(self, where):
        return {int(t) // 1000: v for s in json.loads(self.sonde("query", "--json", "x", where).stdout) for t, v in s["dps"].items()}

    def test_nodes(self):
        self.recorded("a", "n1", [(1_700_000_000, 1)])
        self.recorded("b", "n2", [(1_700_000_001, 2)])
        done = self.sonde("merge", "a", "b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.runs / "one")), ["n1.sonde", "n2.sonde", "run.json"])
        self.assertEqual(self.points("one"), {1_700_000_000: 1, 1_700_000_001: 2})
        runs = [json.loads((self.root / folder / "run.json").read_text()) for folder in "ab"]
        (merged,) = self.ls()
        self.assertEqual((merged["job"], merged["start_ns"], merged["end_ns"]), ("one", runs[0]["start_ns"], runs[1]["end_ns"]))
        self.assertTrue((self.root / "a" / "n1.sonde").exists())
        self.one_line(self.sonde("merge", "a", "b"), 1, "exists already", "--output")

    def test_equal_hosts(self):
        self.recorded("a", "n1", [(1_700_000_000, 1), (1_700_000_001, 5)])
        self.recorded("b", "n1", [(1_700_000_001, 2), (1_700_000_002, 3)])
        shutil.copytree(self.root / "a", self.root / "c")
        done = self.sonde("merge", "-o", "all", "a", "b", "c")
        self.assertEqual((done.returncode, done.stdout), (0, "all: 2 files of 1 host\n"))
        self.assertEqual(done.stderr.splitlines()[0].count("b/n1.sonde is another recording of host"), 1, done.stderr)
        self.assertIn("it becomes n1-2.sonde", done.stderr)
        self.assertIn("c/n1.sonde is the same as a/n1.sonde", done.stderr)
        self.assertEqual(sorted(os.listdir(self.root / "all")), ["n1-2.sonde", "n1.sonde", "run.json"])
        points = self.points("./all")
        self.assertEqual({t: v for t, v in points.items() if t != 1_700_000_001}, {1_700_000_000: 1, 1_700_000_002: 3})
        self.assertIn(points[1_700_000_001], (2, 5))

    def test_several_jobs(self):
        self.recorded("a", "n1", [(1_700_000_000, 1)])
        self.recorded("b", "n1", [(1_700_000_000, 2)], job="two")
        self.one_line(self.sonde("merge", "-o", "all", "a", "b"), 1, "recordings of 2 jobs (one, two)", "--several-jobs")
        self.assertFalse((self.root / "all").exists())
        self.one_line(self.sonde("merge", "--several-jobs", "a", "b"), 1, "give --output")
        done = self.sonde("merge", "--several-jobs", "-o", "all", "a", "b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it holds several jobs", done.stderr)
        found = json.loads(self.sonde("query", "--json", "x", "./all").stdout)
        self.assertEqual(sorted((s["tags"]["job"], *s["dps"].values()) for s in found), [("one", 1), ("two", 2)])

    def test_mistakes(self):
        self.recorded("a", "n1", [(1_700_000_000, 1)])
        (self.root / "none").mkdir()
        (self.root / "bad").mkdir()
        (self.root / "bad" / "x.sonde").write_text("")
        self.assertEqual(self.sonde("merge", "-o", "all", "a", "none").returncode, 1)
        self.one_line(self.sonde("merge", "-o", "all", "a", "bad"), 1, "bad/x.sonde")
        job = self.start("run", "-q", "-l", "1", "--name", "alive", "--", "sleep", "600")
        until(lambda: self.sonde("query", "--list", "alive").returncode == 0, "the job runs")
        self.one_line(self.sonde("merge", "-o", "all", "a", "alive"), 1, "is being written")
        job.terminate()
        self.ends(job)
        self.assertEqual(sorted(path.name for path in self.root.iterdir() if "all" in path.name), [])


if __name__ == "__main__":
    main()
