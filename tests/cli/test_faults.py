"""Signals, terminals, kills, unusable folders: `sonde run` when something fails."""

import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys

from place import SONDE, Place, continue_process, has_ended, main, signal_process, stop_process, until

COUNTER = """
import os, signal, sys
count = 0
def on_int(*_):
    global count
    count += 1
    print('interrupt', count, flush=True)
def on_usr1(*_):
    print('in all', count, flush=True)
    os._exit(9)
signal.signal(signal.SIGINT, on_int)
signal.signal(signal.SIGUSR1, on_usr1)
print('up', os.getppid(), flush=True)
while True:
    signal.pause()
"""


class Terminal:
    """Runs a command on a terminal of its own."""

    def __init__(self, place, command):
        self.text = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(place.root)
            os.execvpe(command[0], command, place.env)
        os.set_blocking(self.master, False)

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        try:
            self.text += os.read(self.master, 65536).decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.text

    def expect(self, pattern):
        found = until(lambda: re.search(pattern, self.read()), f"{pattern!r} on the terminal; there is {self.text!r}")
        self.text = self.text[found.end():]
        return found

    def end(self):
        """Ends the terminal; returns the command's exit code."""
        status = []
        def reap():
            self.read()
            pid, how = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status.append(how)
            return pid
        until(reap, f"{self.pid} ends")
        self.read()
        os.close(self.master)
        return os.waitstatus_to_exitcode(status[0])


class Signals(Place):
    def test_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
            process = self.start("run", "-q", "--", sys.executable, "-c",
                                 f"import signal, sys; signal.signal({int(number)}, lambda *_: sys.exit(40)); print('up', flush=True); signal.pause()")
            self.assertEqual(process.stdout.readline(), "up\n")
            process.send_signal(number)
            self.assertEqual(self.ends(process)[0], 40, number)
        self.nothing_left()

    def test_death_by_signal(self):
        process = self.start("run", "-q", "--", "sh", "-c", "echo up; exec sleep 1000")
        process.stdout.readline()
        process.terminate()
        self.assertEqual(self.ends(process)[0], 128 + signal.SIGTERM)
        self.assertEqual(len(self.recordings()), 1)
        self.nothing_left()

    def test_while_it_starts(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = self.start("run", "-q", "--", "sleep", "1000")
            until(lambda: list(self.tmp.glob("*/*")), "the run folder")
            process.send_signal(number)
            code, _, err = self.ends(process)
            self.assertEqual((code, err), (128 + number, ""))
            self.nothing_left()

    def test_masks_and_dispositions_are_the_callers(self):
        script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
        bare = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=self.env)
        self.assertEqual(self.sonde("run", "-q", "--", "sh", "-c", script).stdout, bare.stdout)

    def test_control_c(self):
        terminal = Terminal(self, [SONDE, "run", "--", sys.executable, "-c", COUNTER])
        terminal.expect(r"sonde: job \S+: http://127.0.0.1:\d+/\?token=[0-9a-f]{64}")
        launcher = int(terminal.expect(r"up (\d+)").group(1))
        children = self.alive("--control-fd")
        self.assertEqual(len(children), 2)
        for ours in children:
            self.assertEqual(os.getsid(ours), ours)  # the terminal's signals cannot reach it
        terminal.type("\x03")
        terminal.expect("interrupt 1")
        # The launcher passes signals on in order: if it had sent the first one twice, the count
        # would show it.
        signal_process(launcher, signal.SIGUSR1)
        terminal.expect("in all 1\r")
        terminal.expect("exit code 9")
        self.assertEqual(terminal.end(), 9)
        self.nothing_left()

    def test_control_c_ends_an_ordinary_program(self):
        terminal = Terminal(self, [SONDE, "run", "--", "sh", "-c", "echo up; exec sleep 1000"])
        terminal.expect("up")
        terminal.type("\x03")
        terminal.expect("recorded in")
        self.assertEqual(terminal.end(), 128 + signal.SIGINT)
        self.assertGreater(self.names()["memory_used_bytes"], 0)
        self.nothing_left()

    def test_control_z(self):
        self.env["PS1"] = "$ "
        self.env["TERM"] = "dumb"
        terminal = Terminal(self, ["bash", "--norc", "--noprofile", "-i"])
        terminal.type("sonde run -q -- sh -c 'echo u\"\"p; exec sleep 1000'\n")
        terminal.expect("up")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        launcher = next(pid for pid, text in self.alive(" run -q ").items() if pid != terminal.pid)
        self.assertIn("State:\tT", pathlib.Path(f"/proc/{launcher}/status").read_text())
        terminal.type("fg\n")
        until(lambda: "State:\tS" in pathlib.Path(f"/proc/{launcher}/status").read_text(), "the launcher goes on")
        until(lambda: all("State:\tT" not in pathlib.Path(f"/proc/{pid}/status").read_text() for pid in self.alive("sleep 1000")), "the command goes on")
        terminal.type("\x03")
        terminal.type("echo it gave $?\n")
        terminal.expect("it gave 130")
        terminal.type("exit\n")
        terminal.end()
        self.nothing_left()


class Kills(Place):
    def test_launcher(self):
        process = self.start("run", "--", "sh", "-c", "sonde put loss 0.5; echo up; exec sleep 1000")
        process.stdout.readline()
        job = self.job()
        process.kill()
        until(lambda: not self.alive(), "nothing is left of the job")
        # The recording stays in the run folder until the next run cleans up, and can be read there.
        self.assertEqual(self.names(job["job"])["loss"], 1)
        self.assertEqual(json.loads(self.sonde("status", "--json").stdout), [])
        self.assertEqual(self.sonde("run", "-q", "true").returncode, 0)
        self.assertIn(job["job"], self.recordings())
        self.assertEqual(self.names(job["job"])["loss"], 1)
        self.nothing_left()

    def test_launcher_without_recording(self):
        process = self.start("run", "--no-record", "--", "sh", "-c", "echo up; exec sleep 1000")
        process.stdout.readline()
        process.kill()
        until(lambda: not self.alive(), "nothing is left of the job")
        self.assertEqual(self.sonde("run", "-q", "--no-record", "true").returncode, 0)
        self.assertEqual(self.recordings(), [])
        self.nothing_left()

    def test_agent(self):
        process = self.start("run", "-l", "1", "--", os.environ["EMITTER"])
        self.assertEqual(process.stdout.readline(), "up\n")
        job = self.job()["job"]
        emitter = until(lambda: next((p for p, text in self.alive().items() if text == os.environ["EMITTER"]), None), "the emitter")
        until(lambda: self.names().get("tick", 0) > 20, "points before")
        first = self.agent()
        # Only an agent that follows another one searches for programs that the other has left.
        self.assertIn(" --new-socket", self.alive()[first])
        signal_process(first, signal.SIGKILL)
        second = until(lambda: next((p for p in self.alive("agent --folder") if p != first), None), "another agent")
        self.assertNotIn(" --new-socket", self.alive()[second])
        before = self.names().get("tick", 0)
        until(lambda: self.names().get("tick", 0) > before + 20, "points after")
        self.assertEqual(self.sonde("put", "late", "1").returncode, 0)
        signal_process(emitter, signal.SIGTERM)
        code, out, err = self.ends(process)
        self.assertEqual(code, 0, err)
        self.assertIn("the agent has ended (signal 9 (Killed)); starting it again", err)
        emitted, dropped = map(int, out.split())
        names = self.names(job)
        self.assertEqual((names["tick"] + dropped, names["late"]), (emitted, 1))
        self.look_at_the_open_span(job)
        self.assertEqual(json.loads((self.runs / job / "run.json").read_text())["agent_restarts"], 1)
        self.nothing_left()

    def test_killed_launcher(self):
        """The command gets SIGTERM, its own children get no signal, and sonde's processes end."""
        process = self.start("run", "-l", "1", "--", "python3", "-c", """if True:
            import os, pathlib, signal, subprocess, sys
            child = subprocess.Popen(["sleep", "1000"], stdin=-3, stdout=-3, stderr=-3)
            def note(number, frame):
                pathlib.Path("noted.new").write_text(f"{number} {child.pid} {child.poll()}")
                os.rename("noted.new", "noted")
                os._exit(0)
            signal.signal(signal.SIGTERM, note)
            print("up", flush=True)
            while True: signal.pause()
        """)
        self.assertEqual(process.stdout.readline(), "up\n")
        self.agent()
        process.kill()
        noted = until(lambda: (self.root / "noted").exists() and (self.root / "noted").read_text(), "the command's SIGTERM")
        number, child, ended = noted.split()
        self.assertEqual((int(number), ended), (signal.SIGTERM, "None"))
        until(lambda: [*self.alive().values()] == ["sleep 1000"], "only the command's own child is left")
        signal_process(int(child), signal.SIGKILL)

    def test_between_two_agents(self):
        """The launcher keeps the agent's socket: a client that connects while no agent runs is
        served by the next one."""
        process = self.start("run", "-l", "1", "--", "sh", "-c", "echo up; exec sleep 1000")
        self.assertEqual(process.stdout.readline(), "up\n")
        job, agent = self.job()["job"], self.agent()
        stop_process(process.pid)
        signal_process(agent, signal.SIGKILL)
        until(lambda: has_ended(agent), "the agent is dead")
        put = self.start("put", "--socket", next(self.tmp.glob("sonde-*/*/agent.sock")), "late", "1")
        until(lambda: len(pathlib.Path("/proc/net/unix").read_text().split(str(next(self.tmp.glob("sonde-*/*/agent.sock"))))) > 2, "put is connected")
        self.assertIsNone(put.poll())
        continue_process(process.pid)
        self.assertEqual(self.ends(put), (0, "", ""))
        process.send_signal(signal.SIGTERM)
        self.ends(process)
        self.assertEqual(self.names(job)["late"], 1)
        self.nothing_left()

    def test_a_program_that_ends_between_two_agents(self):
        """The launcher keeps the program's memory: the next agent reads its remaining data."""
        process = self.start("run", "-l", "1", "--", "sh", "-c", '"$0" >"$1" & echo up; exec sleep 1000', os.environ["EMITTER"], self.root / "said")
        self.assertEqual(process.stdout.readline(), "up\n")
        job = self.job()["job"]
        emitter = until(lambda: next((p for p, text in self.alive().items() if text == os.environ["EMITTER"]), None), "the emitter")
        until(lambda: self.names().get("tick", 0) > 20, "points before")
        agent = self.agent()
        stop_process(process.pid)
        signal_process(agent, signal.SIGKILL)
        until(lambda: has_ended(agent), "the agent is dead")
        signal_process(emitter, signal.SIGTERM)
        until(lambda: emitter not in self.alive() and (self.root / "said").read_text().endswith("\n"), "the emitter's end")
        emitted, dropped = map(int, (self.root / "said").read_text().split()[1:])
        continue_process(process.pid)
        until(lambda: self.alive("agent --folder"), "another agent")
        process.send_signal(signal.SIGTERM)
        self.ends(process)
        self.assertEqual(self.names(job)["tick"] + dropped, emitted)
        self.look_at_the_open_span(job)
        self.nothing_left()

    def look_at_the_open_span(self, job):
        """The emitter never ends the span, and the agent that read its begin is dead: the span ends
        with the emitter nevertheless."""
        asked = self.sonde("query", "--per-span", "running", "none:0all-count:tick", job)
        self.assertIn("unfinished=1", asked.stdout, asked.stderr)

    def test_recording_cut_short(self):
        """Another program truncates the live recording: the command and the aggregator continue,
        and the next agent records."""
        process = self.start("run", "-l", "1", "--", os.environ["EMITTER"])
        self.assertEqual(process.stdout.readline(), "up\n")
        emitter = until(lambda: next((p for p, text in self.alive().items() if text == os.environ["EMITTER"]), None), "the emitter")
        until(lambda: self.names().get("tick", 0) > 20, "points before")
        first = self.agent()
        os.truncate(next(self.tmp.glob("sonde-*/*/*.sonde")), 20000)
        until(lambda: next((p for p in self.alive("agent --folder") if p != first), None), "another agent")
        until(lambda: self.names().get("tick", 0) > 20, "points after")
        signal_process(emitter, signal.SIGTERM)
        code, out, err = self.ends(process)
        self.assertEqual(code, 0, err)
        self.assertEqual(err.count("was cut short by another program"), 1, err)
        self.assertEqual(err.count("starting it again"), 1, err)
        self.assertNotIn("the aggregator has ended", err)
        self.nothing_left()

    def test_what_is_no_recording_lies_among_recordings(self):
        """A FIFO, a device, a truncated file: the message names each with the reason, and the
        recording beside them is read."""
        folder = self.root / "mixed"
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--record", folder, "--", "sh", "-c", "echo loss 0.5 1700000000 | sonde put").returncode, 0)
        sound = next(folder.glob("*.sonde"))
        alone = self.sonde("query", "--csv", "loss", sound)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        os.mkfifo(folder / "a.sonde")
        (folder / "b.sonde").symlink_to("/dev/zero")
        (folder / "z.sonde").write_bytes(sound.read_bytes()[:700])
        among = self.sonde("query", "--csv", "loss", folder)
        self.assertEqual((among.returncode, among.stdout), (0, alone.stdout), among.stderr)
        self.assertEqual(among.stderr.count("not a regular file"), 2, among.stderr)
        self.assertEqual(among.stderr.count("(unreadable: "), 3, among.stderr)
        inspected = self.sonde("inspect", folder)
        self.assertIn(str(sound), inspected.stdout, inspected.stderr)
        self.assertEqual(inspected.stderr.count("\n"), 3, inspected.stderr)

    def test_agent_again_and_again(self):
        process = self.start("run", "--", "sh", "-c", "echo up; read line <fifo; exit 5", env=self.with_fifo())
        self.assertEqual(process.stdout.readline(), "up\n")
        self.assertIn("shows its page", process.stderr.readline())
        seen = set()
        for _ in range(6):
            agent = until(lambda: next((p for p in self.alive("agent --folder") if p not in seen), None), "the next agent")
            seen.add(agent)
            signal_process(agent, signal.SIGKILL)
        said = [process.stderr.readline() for _ in range(6)]
        self.assertEqual([("starting it again" in line) for line in said], 5 * [True] + [False], said)
        self.assertIn("is not started again; the command goes on without it", said[-1])
        # does not wait for the next agent
        self.assertNotEqual(self.sonde("put", "late", "1").returncode, 0)
        with open(self.root / "fifo", "w") as fifo:
            fifo.write("\n")
        self.assertEqual(self.ends(process)[0], 5)
        self.nothing_left()

    def with_fifo(self):
        os.mkfifo(self.root / "fifo")
        return {}

    def test_aggregator(self):
        process = self.start("run", "--", "sh", "-c", "echo up; exec sleep 1000")
        process.stdout.readline()
        before = self.job()
        first = next(iter(self.alive("aggregator --listen")))
        signal_process(first, signal.SIGKILL)
        until(lambda: any(p != first for p in self.alive("aggregator --listen")), "another aggregator")
        until(lambda: self.reachable(self.job()["url"]), "it answers again")
        self.assertEqual(self.job()["job"], before["job"])
        process.terminate()
        code, _, err = self.ends(process)
        self.assertEqual(code, 143)
        self.assertIn("the aggregator has ended (signal 9 (Killed)); starting it again", err)
        self.nothing_left()

    def reachable(self, url):
        host, port = url.removeprefix("http://").split(":")
        with socket.socket() as s:
            return s.connect_ex((host, int(port))) == 0

    def test_hung_agent(self):
        process = self.start("run", "--stop-timeout", "0.2", "--", "sh", "-c", "sonde put loss 1; echo up; read line <fifo", env=self.with_fifo())
        process.stdout.readline()
        agent = self.agent()
        stop_process(agent)
        with open(self.root / "fifo", "w") as fifo:
            fifo.write("\n")
        code, _, err = self.ends(process)
        self.assertEqual(code, 0)
        self.assertIn("the agent has not ended in time and is killed", err)
        self.assertEqual(self.names()["loss"], 1)
        self.nothing_left()

    def test_background_processes_of_the_command_do_not_hold_us_up(self):
        result = self.sonde("run", "-q", "--", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
        self.assertEqual(result.returncode, 0)
        signal_process(int(result.stdout), signal.SIGKILL)
        until(lambda: not self.alive(), "the background process is gone")
        self.nothing_left()


class WithoutTelemetry(Place):
    """If telemetry cannot start, the user sees one line, and the command runs. With --strict, it
    does not run."""

    script = ["sh", "-c", "echo level $SONDE_LEVEL; echo err >&2; exit 7"]

    def runs_plainly(self, *words, arguments=(), env=None):
        """Asserts that the command runs without telemetry, and that a line gives the reason and the
        loss."""
        result = self.sonde("run", *arguments, "--", *self.script, env=env)
        self.assertEqual((result.returncode, result.stdout), (7, "level 0\n"), result.stderr)
        self.said(result, "telemetry cannot start: ", "; the command runs without it, and nothing is recorded", *words)
        self.refused(*words, arguments=["--strict", *arguments], env=env)

    def said(self, result, *words):
        lines = [line for line in result.stderr.splitlines() if line.startswith("sonde: warning: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertIn("err\n", result.stderr)

    def refused(self, *words, code=1, arguments=(), env=None):
        result = self.sonde("run", *arguments, "--", "touch", self.root / "started", env=env)
        self.one_line(result, code, *words)
        self.assertFalse((self.root / "started").exists())
        self.assertEqual(self.alive(), {})

    def base(self):
        return self.tmp / f"sonde-{os.getuid()}"

    def test_no_run_folder(self):
        self.runs_plainly("/nowhere", "--run-dir", env={"TMPDIR": "/nowhere"})
        self.runs_plainly("/proc/sonde-", "--run-dir", env={"TMPDIR": "/proc"})
        (self.root / "file").write_text("")
        self.runs_plainly("file", "--run-dir", env={"TMPDIR": str(self.root / "file")})

    def test_read_only(self):
        if os.getuid() != 0:
            self.skipTest("only root can mount")
        read_only = self.root / "read-only"
        read_only.mkdir()
        mounted = f"mount -t tmpfs -o ro,mode=1777 none {read_only} && exec \"$@\""
        for env in ({"TMPDIR": str(read_only)}, {"HOME": str(read_only)}):
            env = {k: v for k, v in (self.env | env).items() if k != "SONDE_RUNS"}
            done = subprocess.run(["unshare", "-m", "sh", "-ec", mounted, "sh", SONDE, "run", "--", *self.script], env=env, capture_output=True, text=True,
                                  cwd=self.root)
            if "unshare" in done.stderr or "mount" in done.stderr.split("sonde:")[0]:
                self.skipTest("no mount namespaces")
            self.assertEqual((done.returncode, done.stdout), (7, "level 0\n" if env["TMPDIR"] == str(read_only) else "level 2\n"), done.stderr)
            self.said(done, str(read_only), "Read-only file system", "--run-dir" if env["TMPDIR"] == str(read_only) else "SONDE_RUNS")

    def test_link(self):
        elsewhere = self.root / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        self.base().symlink_to(elsewhere)
        self.runs_plainly(str(self.base()), "is a link")
        self.assertEqual(list(elsewhere.iterdir()), [])

    def test_open_to_others(self):
        self.base().mkdir()
        self.base().chmod(0o755)
        self.runs_plainly(str(self.base()), "open to other users (mode 0755)", "chmod 700")

    def test_of_another_user(self):
        if os.getuid() != 0:
            self.skipTest("only root can give folders away")
        self.base().mkdir(mode=0o700)
        os.chown(self.base(), 12345, 12345)
        self.runs_plainly(str(self.base()), "belongs to user 12345")
        self.base().rmdir()

    def test_too_long(self):
        long = self.root / ("x" * 100)
        long.mkdir()
        self.runs_plainly("too long for a socket's path", "TMPDIR", env={"TMPDIR": str(long)})

    def test_restarts_go_on(self):
        result = self.sonde("run", "--restart-on-exit=42", "--", "sh", "-c", "echo $SONDE_RESTART; [ $SONDE_RESTART = 2 ] || exit 42; cat {sonde:hostfile}",
                            env={"TMPDIR": "/nowhere"})
        host = os.uname().nodename.split(".")[0]
        self.assertEqual((result.returncode, result.stdout), (0, f"0\n1\n2\n{host}\n"), result.stderr)

    def test_words_for_nodes(self):
        host = os.uname().nodename.split(".")[0]
        for arguments, env in (((), {"TMPDIR": "/nowhere"}), (("-l", "0"), {})):
            result = self.sonde("run", *arguments, "--", "cat", "{hostfile}", env=env)
            self.assertEqual((result.returncode, result.stdout), (0, host + "\n"), result.stderr)

    def test_no_record_folder(self):
        (self.root / "file").write_text("")
        result = self.sonde("run", "--record", self.root / "file" / "x", "--", *self.script)
        self.assertEqual((result.returncode, result.stdout), (7, "level 2\n"), result.stderr)
        self.said(result, str(self.root / "file"), f"the recording goes to {self.runs} instead")
        self.assertEqual(len(self.recordings()), 1)
        result = self.sonde("run", "--record", "/proc/x", "--", *self.script, env={"SONDE_RUNS": "/proc/runs"})
        self.assertEqual((result.returncode, result.stdout), (7, "level 2\n"), result.stderr)
        self.said(result, "no recording is kept: ", "/proc/x", "--record DIR")
        for strict in (["--strict", "--record", "/proc/x"], ["--strict"]):
            self.refused("/proc/", "--no-record", arguments=strict, env={"SONDE_RUNS": "/proc/runs"})
        result = self.sonde("run", "--strict", "--no-record", "true", env={"SONDE_RUNS": "/proc/runs"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.nothing_left()

    def test_batch_system_is_wrong(self):
        for env in ({"PBS_NODEFILE": "/nowhere/nodes"}, {"SLURM_JOB_NODELIST": "n[3-1]"}):
            result = self.sonde("run", "--", *self.script, env=env)
            self.assertEqual((result.returncode, result.stdout), (7, "level 2\n"), result.stderr)
            self.said(result, "the job's nodes are not known", *env, "--hosts")

    def test_wrong_options(self):
        """The user can correct these, so no command runs."""
        self.refused("--hosts", code=2, arguments=["--hosts=n[3-1]"])
        self.refused("/nowhere/cert", code=2, arguments=["--tls-cert=/nowhere/cert", "--tls-key=/nowhere/key"])
        self.refused("SONDE_RATE", code=2, env={"SONDE_RATE": "often"})
        self.refused("/nowhere/config", code=2, arguments=["--config=/nowhere/config"])

    def test_port_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            taken = s.getsockname()[1]
            result = self.sonde("run", "-q", "--port", taken, "--", "sh", "-c", "echo $SONDE_URL")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn(f":{taken}\n", result.stdout)
        self.assertRegex(result.stdout, r"^http://127\.0\.0\.1:\d+\n$")

    def test_no_address(self):
        result = self.sonde("run", "--listen", "192.0.2.1", "--", "sh", "-c", 'echo "$SONDE_URL"; sonde put loss 1')
        self.assertEqual((result.returncode, result.stdout), (0, "\n"))
        self.assertIn("the aggregator cannot work: ", result.stderr)
        self.assertIn("192.0.2.1", result.stderr)
        self.assertEqual(self.names()["loss"], 1)
        result = self.sonde("run", "--strict", "--listen", "192.0.2.1", "--", "echo", "started")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("the aggregator does not run, and the run is --strict", result.stderr)
        self.nothing_left()

    def broken(self, *names):
        """An environment in which these libraries cannot be loaded."""
        folder = self.root / "broken"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text("no library")
        return {"LD_LIBRARY_PATH": str(folder)}

    def test_libraries_are_loaded_when_they_are_needed(self):
        """Most commands send no request and serve none. Without libcurl, only requests fail."""
        linked = subprocess.run(["ldd", SONDE], capture_output=True, text=True).stdout
        self.assertNotRegex(linked, "libcurl|libmicrohttpd|gnutls")
        env = self.broken("libcurl.so.4", "libcurl-gnutls.so.4")
        result = self.sonde("run", "-q", "--", "sh", "-c", "sonde put loss 5; sonde query none:loss", env=env)
        self.one_line(result, 1, "cannot load a library", "libcurl")
        self.assertEqual(self.names()["loss"], 1)

    def test_no_server_without_its_library(self):
        env = self.broken("libmicrohttpd.so.12")
        result = self.sonde("run", "--", "sonde", "put", "loss", "1", env=env)
        self.assertEqual(result.returncode, 0)
        self.assertIn("the aggregator cannot work: cannot load a library", result.stderr)
        self.assertEqual(self.names()["loss"], 1)


if __name__ == "__main__":
    main()
