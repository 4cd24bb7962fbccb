"""`sonde run` from start to end: exit codes, environment, recordings, messages, and remaining
files."""

import hashlib
import hmac
import json
import os
import pathlib
import random
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

from place import SONDE, Place, main, until

DAY_NS = 86400 * 10**9


class ExitCodes(Place):
    def test_kept(self):
        for code in (0, 3, 255):
            result = self.sonde("run", "--", "sh", "-c", f"exit {code}")
            self.assertEqual(result.returncode, code)
            self.assertEqual(f"exit code {code}" in result.stderr, code != 0)
        self.nothing_left()

    def test_signal(self):
        result = self.sonde("run", "--", "sh", "-c", "kill -9 $$")
        self.assertEqual(result.returncode, 128 + 9)
        self.nothing_left()

    def test_not_found(self):
        result = self.sonde("run", "--quiet", "--", "no-such-command")
        self.one_line(result, 127, "no-such-command", "PATH")
        result = self.sonde("run", "--quiet", "--", "./no/such/file")
        self.one_line(result, 127, "./no/such/file")
        (self.root / "text").write_text("x")
        self.one_line(self.sonde("run", "--quiet", "--", "./text"), 126, "./text", "Permission denied")
        closed = self.root / "closed"
        closed.mkdir(mode=0)
        self.one_line(self.sonde("run", "--quiet", "--", "no-such-command", env={"PATH": f"{closed}:{self.env['PATH']}"}), 127, "no-such-command", "PATH")
        closed.chmod(0o700)
        self.nothing_left()

    def test_input_and_output_are_the_commands(self):
        result = self.sonde("run", "--", "sh", "-c", "cat; echo out; echo err >&2", stdin="in\n")
        self.assertEqual(result.stdout, "in\nout\n")
        self.assertIn("err\n", result.stderr)

    def test_descriptors_are_not_leaked(self):
        result = self.sonde("run", "--", "ls", "/proc/self/fd")
        self.assertEqual(result.stdout.split(), ["0", "1", "2", "3"])  # 3 is from ls itself


class Level0(Place):
    def test_does_nothing_else(self):
        result = self.sonde("run", "-l", "0", "--", "sh", "-c", "echo $$; cat /proc/$PPID/comm; env | grep ^SONDE_ | sort; exit 7")
        lines = result.stdout.splitlines()
        self.assertEqual((result.returncode, result.stderr), (7, ""))
        self.assertIn("SONDE_LEVEL=0", lines)
        self.assertFalse([line for line in lines if line.startswith(("SONDE_SOCKET", "SONDE_JOB", "SONDE_URL"))])
        self.assertEqual(self.recordings(), [])
        self.nothing_left()

    def test_is_exec(self):
        process = self.start("run", "-l", "0", "--", "sleep", "1000")
        until(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n", "sonde has become sleep")

    def test_not_found(self):
        self.one_line(self.sonde("run", "-l", "0", "no-such-command"), 127, "no-such-command")


class Room(Place):
    def test_of_descriptors(self):
        """The agent and the server need not wait when they open the 65th."""
        process = self.start("run", "-l", "1", "--", "sh", "-c", "echo begun; exec sleep 1000")
        self.assertEqual(process.stdout.readline(), "begun\n")
        for name in ("agent", "aggregator"):
            (pid,) = self.alive(f"sonde {name} ")
            self.assertGreaterEqual(self.descriptor_room(pid), 1024, name)
        process.terminate()
        self.ends(process)


class Environment(Place):
    def test_variables(self):
        script = "import json, os; print(json.dumps(dict(os.environ)))"
        result = self.sonde("run", "-l", "3", "--", sys.executable, "-c", script)
        env = json.loads(result.stdout)
        self.assertEqual(env["SONDE_LEVEL"], "3")
        self.assertEqual(env["SONDE_RESTART"], "0")
        self.assertEqual(env["SONDE_URL"], f"http://127.0.0.1:{self.env['SONDE_PORT']}")
        self.assertEqual(env["SONDE_NODELIST"], os.uname().nodename.split(".")[0])
        folder = self.tmp / f"sonde-{os.getuid()}" / env["SONDE_JOB"]
        self.assertEqual(env["SONDE_SOCKET"], str(folder / "agent.sock"))
        self.assertEqual(env["SONDE_TOKEN_FILE"], str(folder / "token"))
        self.assertEqual(env["SONDE_HOSTFILE"], str(folder / "hostfile"))

    def test_run_folder_is_private(self):
        result = self.sonde("run", "--", "sh", "-c", "cd $(dirname $SONDE_SOCKET); stat -c '%n %a' . .. token job.json *.sonde; cat hostfile; wc -c <token")
        self.assertEqual(result.returncode, 0, result.stderr)
        host = os.uname().nodename.split(".")[0]
        self.assertEqual(result.stdout.splitlines(), [". 700", ".. 700", "token 600", "job.json 600", f"{host}.sonde 600", host, "65"])

    def test_a_query_right_after_the_first_point(self):
        """The server may have looked for the node's file before the agent had made it."""
        sonde = os.environ["SONDE"]
        for _ in range(10):
            done = self.sonde("run", "--quiet", "--no-record", "-l", "1", "--", "sh", "-c", f"{sonde} put loss 5 && {sonde} query --csv none:loss")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r",5\n$")

    def test_names_of_jobs(self):
        say = ["run", "--quiet", "--", "sh", "-c", "echo $SONDE_JOB"]
        self.assertEqual(self.sonde(*say, env={"SLURM_JOB_ID": "17"}).stdout, "17\n")
        self.assertEqual(self.sonde(*say, env={"SLURM_JOB_ID": "17"}).stdout, "17-2\n")
        self.assertEqual(self.sonde(*say, env={"SLURM_JOB_ID": "17", "SONDE_JOB": "../a b"}).stdout, "_._a_b\n")
        self.assertRegex(self.sonde(*say).stdout, r"^\d{8}-\d{6}-\d+\n$")
        self.assertEqual(self.recordings()[:2], ["17", "17-2"])

    def test_run_in_a_run(self):
        result = self.sonde("run", "--quiet", "--", SONDE, "run", "--quiet", "--", "sh", "-c", "echo $SONDE_JOB $SONDE_URL")
        inner = result.stdout.split()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(inner[0].endswith("-2"), inner)
        self.assertEqual(len(self.recordings()), 2)
        self.nothing_left()


class Python(Place):
    def test_py_files(self):
        (self.root / "prog.py").write_text("import sys\nprint(sys.argv[1:], sys.version_info[0])\nsys.exit(4)\n")
        result = self.sonde("run", "--", "prog.py", "--rate", "x")
        self.assertEqual((result.returncode, result.stdout), (4, "['--rate', 'x'] 3\n"))
        result = self.sonde("run", "-l", "0", "prog.py", "-l")
        self.assertEqual((result.returncode, result.stdout), (4, "['-l'] 3\n"))

    def test_virtual_environment(self):
        (self.root / "prog.py").write_text("")
        python = self.root / "venv" / "bin" / "python3"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho ours \"$@\"\n")
        python.chmod(0o755)
        result = self.sonde("run", "--quiet", "prog.py", env={"VIRTUAL_ENV": str(self.root / "venv")})
        self.assertEqual(result.stdout, "ours prog.py\n")


BUSY = """
import os, subprocess, sys, time
if len(sys.argv) > 1:
    subprocess.run([sys.executable, __file__], check=True)
while time.process_time() < 0.3: pass
print(sum(os.times()[:4]), flush=True)
os._exit(0) # without the end of the interpreter, which takes long on a busy machine
"""


class ProcessorTime(Place):
    def test_a_command_that_is_shorter_than_a_sample(self):
        """The job's processor time has what the command used after its last sample, and the report
        has what it used before the first one."""
        (self.root / "busy.py").write_text(BUSY)
        done = self.sonde("run", "-q", "--", sys.executable, self.root / "busy.py", "with a child")
        self.assertEqual(done.returncode, 0, done.stderr)
        used = float(done.stdout.splitlines()[-1])
        counted = json.loads(self.sonde("query", "--json", "max:0all-max:job_cpu_seconds_total", "last").stdout)
        [seconds] = counted[0]["dps"].values()
        # The kernel counts in hundredths.
        self.assertGreater(seconds, used - 0.02)
        self.assertLess(seconds, used + 0.1)
        report = json.loads(self.sonde("report", "--json", "last").stdout)
        [cpu] = [use for use in report["use"] if use["resource"] == "cpu"]
        self.assertAlmostEqual(cpu["mean"] * (report["end_ns"] - report["start_ns"]) / 1e9, seconds, 6)


class Recording(Place):
    def test_the_base_folder_stays(self):
        """Otherwise another user could make the folder after a run, and take the next run's place
        or block it."""
        base = self.tmp / f"sonde-{os.getuid()}"
        for _ in range(2):
            self.assertEqual(self.sonde("run", "-q", "--", "true").returncode, 0)
            self.assertEqual((list(base.iterdir()), base.stat().st_mode & 0o777), ([], 0o700))

    def test_end_to_end(self):
        result = self.sonde("run", "-l", "2", "--", "sh", "-c", 'echo "loss 0.5" | sonde put; sleep 3')
        self.assertEqual(result.returncode, 0, result.stderr)
        (job,) = self.recordings()
        for line in (r"ran [34]\.\d s; \d+ points in \d+ series, 0 dropped\n", r"the job used 0\.\d s of processor time; node: CPU mean .* %, peak .* %; memory mean .* of .*\n", f"recorded in {self.runs}/{job}\n",
                     f"sonde query --list {job}"):
            self.assertRegex(result.stderr, "sonde: .*" + line)
        names = self.names()
        self.assertEqual(names["loss"], 1)
        self.assertGreaterEqual(names["cpu_percent"], 3)
        answer = self.sonde("query", "avg:1s-avg:cpu_percent", job)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("in percent\n", answer.stdout)
        self.assertIn(" 0.5\n", self.sonde("query", "sum:loss", self.runs / job).stdout)
        self.nothing_left()

    def test_record_folder(self):
        kept = self.root / "a" / "kept"
        result = self.sonde("run", "--record", "a/kept", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        host = os.uname().nodename.split(".")[0]
        self.assertEqual(sorted(p.name for p in kept.iterdir()), sorted([f"{host}.sonde", "run.json"]))
        run = json.loads((kept / "run.json").read_text())
        self.assertEqual((run["command"], run["exit_code"], run["level"]), ("true", 0, 2))
        self.assertGreaterEqual(run["end_ns"], run["start_ns"])
        self.assertEqual(self.recordings(), [])
        self.assertIn(f"recorded in {kept}", result.stderr)
        self.assertGreater(self.names(kept)["memory_used_bytes"], 0)
        self.nothing_left()

    def test_a_recording_is_not_overwritten(self):
        self.assertEqual(self.sonde("run", "-q", "--record", "kept", "--", "sonde", "put", "first", "1").returncode, 0)
        said = (str(self.root / "kept"), "holds a recording already", f"goes to {self.runs} instead")
        self.one_line(self.sonde("run", "-q", "--record", "kept", "--", "sonde", "put", "second", "1"), 0, *said)
        (self.root / "kept" / "run.json").unlink()  # like the folder of a dump
        self.one_line(self.sonde("run", "-q", "--record", "kept", "--", "sonde", "put", "third", "1"), 0, *said)
        self.assertEqual(self.names(self.root / "kept")["first"], 1)
        self.assertEqual({name for job in self.recordings() for name in self.names(job)} & {"first", "second", "third"}, {"second", "third"})
        self.nothing_left()

    def test_no_record(self):
        result = self.sonde("run", "--no-record", "true")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("recorded", result.stderr)
        self.assertFalse(self.runs.exists())
        self.nothing_left()

    def test_quiet(self):
        result = self.sonde("run", "-q", "true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(self.recordings()), 1)

    def test_across_file_systems(self):
        other = pathlib.Path("/dev/shm")
        if not os.access(other, os.W_OK) or os.stat(other).st_dev == os.stat(self.tmp).st_dev:
            self.skipTest("no second file system")
        folder = other / self.root.name
        folder.mkdir()
        try:
            result = self.sonde("run", "-l", "2", "--", "sh", "-c", "sonde put loss 1", env={"TMPDIR": str(folder)})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.names()["loss"], 1)
            self.nothing_left_in(folder)
            (job,) = self.recordings()
            self.assertEqual(len(list((self.runs / job).iterdir())), 2)
        finally:
            shutil.rmtree(folder)

    def old_run(self, name, start_ns, **more):
        folder = self.runs / name
        folder.mkdir(parents=True)
        run = {"format": "sonde run 1", "job": name, "start_ns": start_ns} | more
        (folder / "run.json").write_text(json.dumps(run))
        return folder

    def old_runs(self, draw, now_ns):
        """Makes random runs: name → the properties that decide about it."""
        made = {}
        for i in range(draw.randrange(30, 60)):
            start_ns = now_ns - draw.randrange(100 * DAY_NS)
            more, grade = {}, 0
            if draw.random() < 0.9:
                length_ns = draw.choice([1, 9, 11, 10000]) * 10**9
                emitted, code = draw.random() < 0.4, draw.choice([0, 0, 1, 126, 127])
                more = {"end_ns": start_ns + length_ns, "exit_code": code, "emitted": emitted}
                short = length_ns < 10 * 10**9
                grade = (3 if code in (126, 127) else 2) if short and not emitted else int(short or not emitted)
            keep = draw.random() < 0.1
            folder = self.old_run(f"old-{i:02}", start_ns, **more, **({"keep": True} if keep else {}))
            with open(folder / "x.sonde", "wb") as f:
                os.posix_fallocate(f.fileno(), 0, draw.choice([64, 256, 1024]) << 10)
            size = sum(p.stat().st_blocks * 512 for p in folder.iterdir())
            made[folder.name] = (grade, start_ns, size, keep)
        return made

    def expected(self, made, now_ns, limit, days, new):
        """Returns the runs that stay by the documented order."""
        left = {name: run for name, run in made.items() if run[3] or now_ns - run[1] <= days * DAY_NS}
        minor = sorted((name for name, run in left.items() if run[0] >= 2 and not run[3]), key=lambda name: (-left[name][0], left[name][1]))
        # including the new one, which is minor, too
        for name in minor[:max(0, len(minor) + 1 - 20)]:
            del left[name]
        order = sorted((name for name, run in left.items() if not run[3]), key=lambda name: (-left[name][0], left[name][1]))
        total = new + sum(left[name][2] for name in order)
        for name in order:
            if total <= limit:
                break
            total -= left[name][2]
            del left[name]
        return left

    def test_room_is_made(self):
        seed = int(os.environ.get("SONDE_TEST_SEED", "1"))
        for turn in range(round(4 * float(os.environ.get("SONDE_TEST_ROUNDS", "1")))):
            shutil.rmtree(self.runs, ignore_errors=True)
            draw = random.Random(f"{seed} {turn}")
            made = self.old_runs(draw, time.time_ns())
            for again in range(3):
                made = self.make_room(draw, made, f"seed {seed}, turn {turn}, {again}")

    def make_room(self, draw, made, words):
        """A job ends after the user has removed some runs. Returns the runs that stay."""
        for name in [name for name in made if draw.random() < 0.1]:
            shutil.rmtree(self.runs / name)
            del made[name]
        before, now_ns = set(self.recordings()), time.time_ns()
        limit, days = draw.choice([6, 12, 24]) << 20, draw.choice([40.5, 90.5])
        result = self.sonde("run", "--runs-size", limit, "--runs-age", days, "true")
        self.assertEqual(result.returncode, 0, words)
        (new,) = set(self.recordings()) - before
        size = sum(p.stat().st_blocks * 512 for p in (self.runs / new).iterdir())
        left = self.expected(made, now_ns, limit, days, size)
        self.assertEqual({name for name in self.recordings() if name != new}, set(left), words)
        gone = set(made) - set(left)
        lines = [line for line in result.stderr.splitlines() if "removed" in line]
        self.assertEqual(len(lines), 1 if gone else 0, words)
        if gone:
            (line,) = lines
            self.assertIn(f"removed {len(gone)} recording", line)
            self.assertEqual(set(line.rsplit(": ", 1)[1].split(", ")), gone, words)
            self.assertEqual("warning" in line, any(made[name][0] < 2 for name in gone), words)
        return left | {new: (2, now_ns, size, False)}

    def test_the_end_reads_no_other_run(self):
        """The index tells the end of a job about the other runs, until it is a day old."""
        self.old_run("job1", time.time_ns() - DAY_NS)
        self.assertEqual(self.sonde("run", "-q", "true").returncode, 0)
        self.old_run("job2", 1)
        (self.runs / "job1/run.json").write_text('{"format": "sonde run 1", "start_ns": 1}')
        self.assertEqual(self.sonde("run", "-q", "true").stderr, "")
        index = self.runs / ".sonde-index"
        self.assertEqual(len(index.read_text().splitlines()), 4)
        first, rest = index.read_text().split("\n", 1)
        self.assertRegex(first, r"^sonde runs 1 \d+$")
        before = int(first.split()[-1]) - DAY_NS - 1
        index.write_text(f"sonde runs 1 {before}\n{rest}")
        self.one_line(self.sonde("run", "-q", "true"), 0, "warning", "removed 2 recordings", "job1", "job2")
        self.assertGreater(int(index.read_text().split()[3]), before + DAY_NS)

    def test_an_index_is_only_a_hint(self):
        """Nothing is lost because of a wrong, foreign or unwritable index."""
        index, now_ns = self.runs / ".sonde-index", time.time_ns()
        for name in ("valuable", "kept"):
            self.old_run(name, now_ns - DAY_NS, end_ns=now_ns, exit_code=0, emitted=True, keep=name == "kept")
        (self.root / "elsewhere").mkdir()
        (self.root / "elsewhere/run.json").write_text('{"format": "sonde run 1", "start_ns": 1}')
        (self.runs / "link").symlink_to(self.root / "elsewhere")
        wrong = [f"sonde runs 1 {now_ns}\n" + "".join(f"1 {1 << 50} 3 0 {name}\n" for name in ("valuable", "kept", "link", "gone"))]
        size = sum(p.stat().st_blocks * 512 for p in (self.runs / "valuable").iterdir())
        wrong += [f"sonde runs 1 {now_ns}\n{start} {bytes} 0 0 valuable\n" for start, bytes in ((1, size), (now_ns - DAY_NS, 1 << 50))]
        wrong += [wrong[0][:-1], wrong[0].replace("kept", "../elsewhere"), wrong[0] + "what\n", wrong[0].replace("1 3 0", "1 9 0"), "", "\0\n" * 9]
        wrong += [f"sonde runs 1 {now_ns + DAY_NS}\n" + wrong[0].split("\n", 1)[1], f"sonde runs 2 {now_ns}\n"]
        for text in wrong:
            index.write_text(text)
            result = self.sonde("run", "-q", "--runs-age", "30", "true")
            self.assertEqual((result.returncode, result.stderr), (0, ""), text)
            self.assertEqual({"valuable", "kept", "link"} - set(self.recordings()), set(), text)
            self.assertTrue((self.root / "elsewhere/run.json").exists())
        for make in (lambda: index.symlink_to(self.root / "victim"), lambda: index.mkdir(), lambda: os.mkfifo(index)):
            index.rmdir() if index.is_dir() and not index.is_symlink() else index.unlink(missing_ok=True)
            make()
            self.assertEqual(self.sonde("run", "-q", "true").stderr, "")
            self.assertFalse((self.root / "victim").exists())

    def test_moved_runs_count(self):
        self.assertEqual(self.sonde("run", "-q", "true").returncode, 0)
        self.old_run("../old", 1)
        self.assertEqual(self.sonde("mv", str(self.runs.parent / "old"), str(self.runs)).returncode, 0)
        self.one_line(self.sonde("run", "-q", "true"), 0, "warning", "removed 1 recording", "old")

    def test_what_is_not_ours_stays(self):
        self.old_run("old", 1)
        (self.runs / "mine").mkdir()
        (self.runs / "mine" / "run.json").write_text('{"my own": true}')
        (self.runs / "notes").write_text("x")
        victim = self.root / "elsewhere"
        victim.mkdir()
        (victim / "run.json").write_text(json.dumps({"format": "sonde run 1", "start_ns": 1}))
        (self.runs / "link").symlink_to(victim)
        result = self.sonde("run", "-q", "true")
        self.one_line(result, 0, "warning", "removed 1 recording", "old")
        self.assertEqual({"link", "mine", "notes"}, set(self.recordings()) & {"old", "link", "mine", "notes"})
        self.assertTrue((victim / "run.json").exists())

    def test_what_decides_is_recorded(self):
        for arguments, command, expected in (([], ["sonde", "put", "loss", "1"], (True, None)), ([], ["sonde", "annotate", "here"], (True, None)),
                                             ([], ["true"], (False, None)), (["--keep"], ["true"], (False, True)), (["-l", "4"], ["no-such-command"], (False, None))):
            shutil.rmtree(self.runs, ignore_errors=True)
            self.sonde("run", "-q", *arguments, "--", *command)
            (job,) = self.recordings()
            run = json.loads((self.runs / job / "run.json").read_text())
            self.assertEqual((run["emitted"], run.get("keep")), expected, command)
        self.sonde("run", "-q", "true", env={"SONDE_KEEP": "1"})
        self.assertEqual(sum("keep" in json.loads((self.runs / job / "run.json").read_text()) for job in self.recordings()), 1)

    def test_failures_do_not_push_out_work(self):
        self.sonde("run", "-q", "--", "sonde", "put", "loss", "1")
        (work,) = self.recordings()
        for _ in range(22):
            self.sonde("run", "-q", "--", "no-such-command")
        self.assertIn(work, self.recordings())
        self.assertEqual(len(self.recordings()), 21)


class Reachable(Place):
    def test_status_and_http(self):
        self.start("run", "--", "sleep", "1000")
        job = self.job()
        self.assertEqual((job["command"], job["level"]), ("sleep 1000", 2))
        token = pathlib.Path(job["token_file"]).read_text().strip()
        view = hmac.new(token.encode(), b"sonde view token", hashlib.sha256).hexdigest()
        self.assertEqual(job["url_with_token"], f"{job['url']}/?token={view}")
        request = urllib.request.Request(job["url"] + "/api/version", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(job["url"] + "/api/version")
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()
        shown = self.sonde("status").stdout
        port = job["url"].rsplit(":", 1)[1]
        self.assertEqual(job["tunnel"], f"ssh -NL {port}:127.0.0.1:{port} {job['host']}")
        for env in ({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, {"SLURM_JOB_ID": "7"}):
            self.assertIn(f"on another machine, there first: {job['tunnel']}\n", self.sonde("status", env=env).stdout)
        self.assertNotIn("ssh", self.sonde("status", env={"SSH_CONNECTION": ""}).stdout)
        for word in (job["job"], "sleep 1000", job["url"], view):
            self.assertIn(word, shown)
        until(lambda: "cpu_percent" in self.names(), "cpu_percent while it runs")
        answer = self.sonde("query", "avg:memory_total_bytes")
        self.assertIn(f"running job {job['job']}", answer.stderr)

    def test_the_way_from_another_machine(self):
        came = {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
        said = self.sonde("run", "-v", "-l", "1", "true", env=came).stderr
        self.assertRegex(said, r"on another machine, there first: ssh -NL (\d+):127\.0\.0\.1:\1 \S+\n")
        # A server that listens for other machines needs no tunnel; a quiet run prints no line.
        self.assertNotIn("ssh -NL", self.sonde("run", "-v", "-l", "1", "--listen", "0.0.0.0", "true", env=came).stderr)
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "true", env=came).stderr, "")
        self.one_line(self.sonde("run", "--remote-tunnel-port", "5000", "true"), 2, "--remote-tunnel-node")

    def test_limits_of_the_server(self):
        """`sonde run` passes them to the aggregator."""
        self.start("run", "-l", "1", "--query-memory=2G", "--query-deadline", "2.5", "--connections=16", "--", "sleep", "1000")
        job = self.job()
        token = pathlib.Path(job["token_file"]).read_text().strip()
        with urllib.request.urlopen(urllib.request.Request(job["url"] + "/sonde/v1/status", headers={"Authorization": f"Bearer {token}"})) as answer:
            self.assertEqual(json.load(answer)["limits"], {"connections": 16, "connections_per_client": 8, "query_deadline_seconds": 2.5, "node_deadline_seconds": 2, "query_memory_bytes": 2 << 30, "total_memory_bytes": 2 << 30})
        self.one_line(self.sonde("run", "--connections=3", "true"), 2, "--connections")

    def test_other_origins(self):
        """A page of an allowed origin may read, with the token; other pages may not."""
        self.start("run", "-l", "1", "--cors-origin", "https://grafana.example", "--", "sleep", "1000")
        job = self.job()
        token = pathlib.Path(job["token_file"]).read_text().strip()
        for origin, allowed in (("https://grafana.example", "https://grafana.example"), ("https://other.example", None)):
            request = urllib.request.Request(job["url"] + "/api/version", headers={"Authorization": f"Bearer {token}", "Origin": origin})
            with urllib.request.urlopen(request) as answer:
                self.assertEqual(answer.headers["Access-Control-Allow-Origin"], allowed)

    def test_https(self):
        """The path of the certificate is relative to the user's folder; the agent does not need
        it."""
        if not shutil.which("openssl"):
            self.skipTest("openssl is not here")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", "key.pem", "-out", "cert.pem"], cwd=self.root, check=True, capture_output=True)
        (self.root / "key.pem").chmod(0o600)
        self.start("run", "--tls-cert", "cert.pem", "--tls-key=key.pem", "--", "sleep", "1000")
        job = self.job()
        self.assertRegex(job["url"], "^https://127.0.0.1:")
        with urllib.request.urlopen(job["url"] + "/healthz", context=ssl.create_default_context(cafile=str(self.root / "cert.pem"))) as answer:
            self.assertEqual(answer.read(), b"ok\n")
        until(lambda: "cpu_percent" in self.names(), "cpu_percent while it runs")

    def test_a_token_file_is_made(self):
        fixed = self.root / "fixed"
        for _ in range(2):
            result = self.sonde("run", "-q", "--token-file", fixed, "--", "true")
            self.assertEqual((result.returncode, result.stderr, fixed.stat().st_mode & 0o777), (0, "", 0o600))

    def test_no_certificate(self):
        self.one_line(self.sonde("run", "--tls-cert=none.pem", "--tls-key=none.pem", "true"), 2, "none.pem", "No such file")
        self.nothing_left()

    def test_no_job(self):
        self.assertEqual(self.sonde("status").stdout, "no job runs here; start one with sonde run\n")
        self.assertEqual(self.sonde("status", "--json").stdout, "[]\n")

    def test_url_is_printed_when_asked_for(self):
        result = self.sonde("run", "-v", "true")
        self.assertRegex(result.stderr, rf"sonde: job \S+: http://127\.0\.0\.1:{self.env['SONDE_PORT']} \(on \S+, sonde status shows the address with a token")
        # because other users may be able to read a batch job's log
        self.assertNotIn("token=", result.stderr)
        self.assertNotIn("http", self.sonde("run", "true").stderr)


class Put(Place):
    def test_arguments_and_lines(self):
        script = "sonde put loss 0.5 rank=3 && printf 'put steps 1700000000 4 k=v\\nplain 1\\n' | sonde put"
        self.assertEqual(self.sonde("run", "-l", "1", "--", "sh", "-c", script).returncode, 0)
        names = self.names()
        self.assertEqual((names["loss"], names["steps"], names["plain"]), (1, 1, 1))
        self.assertNotIn("cpu_percent", names)

    def test_refused_lines(self):
        result = self.sonde("run", "-q", "--", "sh", "-c", "printf 'good 1\\nbad x y z\\nfine 2\\n' | sonde put; echo $?")
        self.assertEqual(result.stdout, "1\n")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("line 2: value 'x' is not a number", result.stderr)
        names = self.names()
        self.assertEqual((names["good"], names["fine"]), (1, 1))
        self.assertGreater(names["sonde_dropped_total"], 0)

    def test_dropped_points_are_in_the_summary(self):
        result = self.sonde("run", "--", "sh", "-c", "printf 'bad x\nbad y\n' | sonde put")
        self.assertIn(" 2 dropped\n", result.stderr)
        self.assertNotIn("sonde_dropped_total", self.names(self.put_well()))

    def put_well(self):
        result = self.sonde("run", "--", "sonde", "put", "good", "1")
        self.assertIn(" 0 dropped\n", result.stderr)
        return max(self.recordings(), key=lambda name: (self.runs / name).stat().st_mtime_ns)

    def test_from_outside(self):
        self.start("run", "--", "sleep", "1000")
        job = self.job()
        self.assertEqual(self.sonde("put", "seen", "1").returncode, 0)
        self.assertEqual(self.sonde("put", "--job", job["job"], "seen", "2").returncode, 0)
        self.assertEqual(self.names(job["job"])["seen"], 2)
        self.one_line(self.sonde("put", "--job", "other", "x", "1"), 1, "job other")

    def test_nobody_there(self):
        self.one_line(self.sonde("put", "loss", "1"), 1, "no job runs here")
        self.one_line(self.sonde("put", "loss", "1", env={"SONDE_SOCKET": str(self.root / "gone.sock")}), 1, "gone.sock", "job is over")
        self.one_line(self.sonde("put", "loss", "1", env={"SONDE_SOCKET": str(self.root / "nowhere" / "agent.sock")}), 1, "nowhere", "cannot be reached from here", "bind")

    def test_annotate(self):
        script = "sonde annotate 'rate halved: 0.1\\n' rank=3 'why=it did not converge' && sonde annotate plain"
        result = self.sonde("run", "-q", "-l", "1", "--record", "kept", "--", "sh", "-c", script)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        url, token = self.start("replay", self.root / "kept").stderr.readline().split()[1].split("/?token=")
        with urllib.request.urlopen(urllib.request.Request(f"{url}/sonde/v1/annotations", headers={"Authorization": f"Bearer {token}"})) as answer:
            found = json.load(answer)["annotations"]
        self.assertEqual([(a["text"], {k: v for k, v in a["tags"].items() if k != "host"}) for a in found],
                         [("rate halved: 0.1\\n", {"rank": "3", "why": "it did not converge"}), ("plain", {})])
        self.one_line(self.sonde("annotate", "x", "rank"), 2, "'rank' is not a tag")
        self.one_line(self.sonde("annotate", "x", "a b=1"), 2, "'a b=1' is not a tag")
        self.one_line(self.sonde("annotate", "x"), 1, "no job runs here")

    def test_mistakes(self):
        self.one_line(self.sonde("put", "loss"), 2, "a value is missing")
        self.one_line(self.sonde("put", "loss", "1\nx 2"), 2, "argument 2", "blank")

    def test_many_lines(self):
        result = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", "seq 200000 | sed 's/^/n /' | sonde put")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertGreater(self.names()["n"], 0)


if __name__ == "__main__":
    main()
