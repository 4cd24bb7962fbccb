"""Restarts of a command, and its placeholders, on one machine."""

import os
import signal
import subprocess
import sys

from place import Place, main, until


class Restart(Place):
    def script(self, text):
        path = self.root / "script.sh"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def test_by_exit_code(self):
        # Dragon's programs read DRAGON_RESILIENT_RESTART.
        script = self.script('echo $SONDE_RESTART$DRAGON_RESILIENT_RESTART\n[ $SONDE_RESTART = 2 ] && exit 3\nexit 42\n')
        done = self.sonde("run", "--record", self.root / "rec", "--restart-on-exit=42", script)
        self.assertEqual((done.returncode, done.stdout), (3, "0\n11\n21\n"), done.stderr)
        # All attempts are in one recording, each with an annotation at its beginning.
        self.assertIn(" 3 spans and annotations", self.sonde("inspect", self.root / "rec").stdout)

    def test_at_most(self):
        script = self.script('echo $SONDE_RESTART\nexit 42\n')
        done = self.sonde("run", "--no-record", "--restart-on-exit=42", "--max-restarts=1", script)
        self.assertEqual((done.returncode, done.stdout), (42, "0\n1\n"), done.stderr)
        self.assertIn("--max-restarts", done.stderr)

    def test_a_signal_is_no_reason(self):
        script = self.script("trap 'kill -9 $!; exit 42' TERM\nsleep 1000 &\necho up\nwait\n")
        run = self.start("run", "--no-record", "--restart-on-exit=42", script)
        self.assertEqual(run.stdout.readline(), "up\n")
        run.send_signal(signal.SIGTERM)
        code, out, _ = self.ends(run)
        self.assertEqual((code, out), (42, ""))

    def test_what_an_attempt_has_left_is_gone_before_the_next(self):
        script = self.script('if [ $SONDE_RESTART = 1 ]; then kill -0 $(cat pid) && echo left; exit 0; fi\n'
                             'setsid sleep 1000 & echo $! > pid\nexit 42\n')
        done = self.sonde("run", "--no-record", "--restart-on-exit=42", script)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_words_for_nodes(self):
        host = os.uname().nodename.split(".")[0]
        done = self.sonde("run", "--no-record", "echo", "{nodelist}", "{hosts}", "x{sonde:nnodes}y", "--n={nnodes}", "{nnodes", "${other}", "{{hosts}}")
        self.assertEqual(done.stdout, f"{host} {host} x1y --n=1 {{nnodes ${{other}} {{hosts}}\n")
        code = 'hosts = 3; print(f"{hosts}", "{nodelist}")'  # a program's own braces
        self.assertEqual(self.sonde("run", "--no-record", sys.executable, "-c", code).stdout, "3 {nodelist}\n")
        done = self.sonde("run", "--no-record", "cat", "{hostfile}")
        self.assertEqual(done.stdout, host + "\n")

    def test_faults_of_the_command_line(self):
        self.one_line(self.sonde("run", "--exhaust-resources", "true"), 2, "--resilient")
        self.one_line(self.sonde("run", "--hosts=a", "--hostfile=b", "true"), 2, "contradict")
        self.one_line(self.sonde("run", "--hosts=n[3-1]", "true"), 2, "--hosts", "backwards")
        self.one_line(self.sonde("run", "--hosts=-oProxyCommand=x", "true"), 2, "not the name of a host")
        self.one_line(self.sonde("run", "--nodes=2", "true"), 2, "--nodes=2", "1 node")
        self.one_line(self.sonde("run", "true", env={"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}), 2, "4 copies", "sonde run mpirun")
        silent = self.sonde("run", "true", env={"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"})
        self.assertEqual((silent.returncode, silent.stderr), (2, ""))
        self.nothing_left()


class Node(Place):
    """Runs `sonde node`, driven by lines from the test."""

    def told(self, **changes):
        lines = {"job": "j1", "folder": self.tmp / f"sonde-{os.getuid()}" / "j1", "token": "00", "record": self.runs / "j1", "command": "true",
                 "agent": "--telemetry-level=2", "hosts": "a,b"} | changes
        return "sonde-node 2\n" + "".join(f"{k} {v}\n" for k, v in lines.items()) + "go\n"

    def speak(self, text):
        done = self.sonde("node", stdin=text)
        return done.returncode, [line.removeprefix("sonde-node ") for line in done.stdout.splitlines()]

    def test_its_life(self):
        process = self.start_speaking(self.told())
        host = process.stdout.readline().split()[-1]
        folder = self.tmp / f"sonde-{os.getuid()}" / "j1"
        self.assertEqual((folder / "hostfile").read_text(), "a\nb\n")
        self.assertEqual((folder / "token").read_text(), "00\n")
        process.stdin.write("beat\nsomething else\nhosts a\n")
        process.stdin.flush()
        until(lambda: (folder / "hostfile").read_text() == "a\n", "a new hostfile")
        self.assertEqual(self.sonde("put", "x", "1").returncode, 0)
        process.stdin.close()
        self.assertEqual(process.stdout.read(), f"sonde-node kept {self.runs}/j1/{host}.sonde\nsonde-node ended\n")
        self.assertEqual(process.wait(), 0)
        self.assertIn("x", self.names("j1"))
        self.nothing_left()

    def start_speaking(self, text):
        process = subprocess.Popen([os.environ["SONDE"], "node"], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        process.stdin.write(text)
        process.stdin.flush()
        return process

    def test_one_of_several_with_the_same_input(self):
        self.env["A_NAME"] = "n2"
        process = self.start_speaking(self.told(**{"name-in": "A_NAME"}).removesuffix("go\n"))
        self.assertEqual(process.stdout.readline(), "sonde-node here n2\n")
        process.stdin.write("@n3 end\n@n2\n@n2 hosts x,y\ngo\n")
        process.stdin.flush()
        self.assertIn("ready", process.stdout.readline())
        folder = self.tmp / f"sonde-{os.getuid()}" / "j1"
        self.assertEqual((folder / "hostfile").read_text(), "x\ny\n")
        process.stdin.write("@n3 drop\n@n2 end\n")  # standard input stays open
        process.stdin.flush()
        kept, ended = process.stdout.read().splitlines()
        self.assertIn("kept", kept)
        self.assertEqual((ended, process.wait()), ("sonde-node ended", 0))
        self.nothing_left()
        # Without its name, a node does not answer.
        del self.env["A_NAME"]
        self.assertEqual(self.speak("sonde-node 2\nname-in A_NAME\n"), (0, ["ended"]))

    def test_it_ends_when_nobody_is_heard(self):
        process = self.start_speaking(self.told(**{"beat-ms": 50, "orphan-ms": 300}))
        self.assertIn("ready", process.stdout.readline())
        said = process.stdout.read()
        self.assertIn("sonde-node beat\n", said)
        self.assertIn("error nothing was heard from the first node", said)
        self.assertEqual(process.wait(), 1)
        self.nothing_left()

    def test_faults(self):
        code, said = self.speak("sonde-node 1\ngo\n")
        self.assertEqual((code, said[1:]), (1, ["ended"]))
        self.assertIn("both nodes need the same", said[0])
        code, said = self.speak("GET / HTTP/1.1\n\n")
        self.assertEqual((code, said[1:]), (1, ["ended"]))
        self.assertIn("the setup lacks", self.speak("sonde-node 2\ngo\n")[1][0])
        self.assertIn("the setup lacks", self.speak(self.told(folder="relative/j1"))[1][0])
        self.assertEqual(self.speak(""), (0, ["ended"]))
        process = self.start_speaking(self.told(agent="--no-such-option"))
        self.assertIn("error the agent has ended at its start", process.stdout.read())
        self.assertEqual(process.wait(), 1)
        code, said = self.speak(self.told(folder="/proc/sonde-0/j1"))
        self.assertEqual(code, 1)
        self.nothing_left()

    def test_a_recording_that_is_there_is_not_overwritten(self):
        process = self.start_speaking(self.told())
        host = process.stdout.readline().split()[-1]
        (self.runs / "j1").mkdir(parents=True)
        (self.runs / "j1" / f"{host}.sonde").write_text("precious")
        process.stdin.close()
        self.assertRegex(process.stdout.read(), "sonde-node stays .*/j1: .* holds a recording already")
        self.assertEqual((self.runs / "j1" / f"{host}.sonde").read_text(), "precious")


if __name__ == "__main__":
    main()
