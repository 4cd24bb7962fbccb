"""Tests of the class Cluster (test_cluster.py): answers with the data of all nodes, trees of
relays, the choice of nodes for a request, transports, clocks, and tunnels."""

import json
import os
import signal
import unittest
import urllib.parse

from cluster_job import ASK, CUSTOM, HOSTS, TRANSPORT, moves_no_data, SKEW
from lab import PATIENCE_S, until

# Opens an address as a browser does: the token becomes a session's cookie. Prints the address after
# the redirect, and the hosts that this page's server shows.
BROWSE = """
import http.cookiejar, json, sys, urllib.request
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
page = browser.open(urllib.request.Request(sys.argv[1], headers={"Accept": "text/html"}))
assert page.headers.get_content_type() == "text/html" and b"sonde" in page.read()
nodes = json.load(browser.open(page.url + "sonde/v1/nodes"))["nodes"]
print(json.dumps([page.url, [n["host"] for n in nodes]]))
"""


class NodeAnswers:
    def test_one_answer_of_all_nodes_under_slurm(self):
        run = self.start("salloc", "--quiet", "-N3", "sonde", "run", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.data_over()
        self.assertEqual([n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]], HOSTS)
        # No process has the job's key, which is a secret, in its command line.
        (folder,) = self.lab.file("n1", "/tmp/sonde-0").iterdir()
        key = (folder / "key").read_bytes().hex()
        for host in HOSTS:
            self.assertFalse([text for text in self.lab.processes(host).values() if key in text], host)
        # When an aggregator dies, the nodes find the next one.
        (pid,) = self.lab.processes("n1", "sonde aggregator ")
        os.kill(pid, signal.SIGKILL)
        until(lambda: list(self.lab.processes("n1", "sonde aggregator ")) not in ([], [pid]), "another aggregator")
        self.all_answer()
        self.data_over()
        self.stop(run)

    def hub_nodes(self):
        """Returns host → its entry in the hub's status."""
        answer = self.ask("/sonde/v1/status")[1]
        return {n["host"]: n for n in answer["hub"]["nodes"]} if answer else {}

    def moved(self):
        """Returns host → bytes that n2 and n3 transferred over the fabric."""
        nodes = self.hub_nodes()
        return {host: nodes[host]["transport_bytes"] for host in ("n2", "n3")}

    def test_one_answer_of_all_nodes_over_ssh(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "sleep", "1000")
        self.up()
        self.all_answer()
        self.data_over()
        # A killed relay is restarted.
        (pid,) = self.lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.hears(run, "node n2: the relay has ended (signal 9 (Killed)); starting it again")
        self.all_answer()
        # An unreachable node is reported within a request's timeout, and answers again afterwards.
        self.lab.partition("n2")
        missing, answer = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late)", "n2 (not connected)"))
        self.assertEqual([a["tags"]["host"] for a in answer], ["n1", "n3"])
        self.lab.heal("n2")
        self.all_answer()
        self.data_over()
        # On every node, sonde open prints the address of the first node, where the server is.
        for node in ("n1", "n3"):
            opened = self.lab.run(node, "env", "SSH_CONNECTION=a b c d", "sonde", "open")
            self.assertEqual(opened.returncode, 0, opened.stderr)
            self.assertRegex(opened.stdout, r"^http://127\.0\.0\.1:(\d+)/\?token=\w+\non another machine, there first: ssh -NL \1:127\.0\.0\.1:\1 n1\n$")
        self.assertIn(" n1\n", self.lab.run("n3", "sonde", "open").stdout)
        self.opened_on("n3")
        # A relay without the right key is refused.
        port = self.ask("/sonde/v1/status")[1]["hub"]["port"]
        job = self.ask("/sonde/v1/status")[1]["job"]
        self.lab.run("n3", "sh", "-c", "umask 077; head -c 32 /dev/zero > /tmp/wrong-key; mkdir /tmp/nothing")
        self.started.append(self.lab.start("n3", "timeout", "60", "sonde", "relay", "--key-file=/tmp/wrong-key", f"--parent=10.77.0.11:{port}", "--host=n3", f"--job={job}", "/tmp/nothing"))
        until(lambda: self.ask("/sonde/v1/status")[1]["hub"]["refused_key"] > 0, "a wrong key is refused and counted")
        self.all_answer()
        self.lab.signal("n3", signal.SIGKILL, "wrong-key")
        self.lab.run("n3", "rm", "-r", "/tmp/wrong-key", "/tmp/nothing")
        self.stop(run)

    def opened_on(self, node):
        """Follows the lines of `sonde open` on a node: through the ssh command, the address shows
        the page, with the data of all nodes."""
        address, line = self.lab.run(node, "sonde", "open").stdout.splitlines()
        command = line.removeprefix("on another machine, there first: ").split()
        self.assertEqual(command[0], "ssh", line)
        tunnel = self.lab.start(node, *command)
        self.started.append(tunnel)
        answers = []
        def shown():
            answers[:] = [self.lab.run(node, "python3", "-c", BROWSE, address)]
            return answers[0].returncode == 0
        until(shown, lambda: f"the page through the tunnel: {answers[0].stderr}")
        self.lab.signal(node, signal.SIGTERM, "ssh -NL")
        tunnel.wait(60)
        shows, hosts = json.loads(answers[0].stdout)
        self.assertEqual((shows, hosts), (address.split("?")[0], HOSTS))

    def test_a_tree(self):
        """With a fanout of 2, the first node reaches the fourth one through the second one, or
        directly if the second one is missing."""
        four = [*HOSTS, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--node-timeout=2", "--node-deadline=5", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)

        def connected():
            return {n["host"]: (n["connected"], n.get("via")) for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]}
        behind = {"n2": (True, None), "n3": (True, None), "n4": (False, "n2")}
        until(lambda: connected() == behind, lambda: f"n4 is behind n2: {connected()}")
        self.data_over()
        # A missing relay affects its children only for a short time: n4 counts as missing until the
        # launcher tells it to connect to the first node.
        self.lab.partition("n2")
        missing, _ = self.ask(CUSTOM)
        self.assertIn(missing, ("n2 (late), n4 (late: its relay is missing)", "n2 (late)", "n2 (not connected)"))
        until(lambda: self.ask(CUSTOM)[0] in ("n2 (late)", "n2 (not connected)"), lambda: f"n4 answers without n2: {self.ask(CUSTOM)} {connected()}")
        until(lambda: [a["tags"]["host"] for a in self.ask(CUSTOM)[1]] == ["n1", "n3", "n4"], "the other three answer")
        self.lab.heal("n2")
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        # A killed relay is restarted, and its children reconnect.
        (pid,) = self.lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.all_answer(four)
        until(lambda: connected() == behind, lambda: f"n4 is behind n2 again: {connected()}")
        self.data_over()
        self.stop(run)

    def asked(self, m):
        """Sends a query; returns the nodes to which the hub sent it, and the answer."""
        def questions():
            return {host: n["questions"] for host, n in self.hub_nodes().items()}
        before = questions()
        missing, answer = self.ask("/api/query?start=1h-ago&no_annotations&m=" + urllib.parse.quote(m))
        self.assertIsNone(missing)
        return sorted(host for host, count in questions().items() if count > before[host]), answer

    def test_only_nodes_that_can_have_the_data_are_asked(self):
        """The hub is on n1. It sends queries to n2 and n3 directly, and to n4 through n2."""
        four = [*HOSTS, "n4"]
        run = self.start("sonde", "run", "--hosts=n[1-4]", "--fanout=2", "--no-record", "sleep", "1000")
        self.up(four)
        self.all_answer(four)
        until(lambda: self.asked("max:custom{host=n1}")[0] == [], "the hub knows the hosts in the series of each node")
        for hosts, asked in [("*", ["n2", "n3"]), ("n1", []), ("n2", ["n2"]), ("n3", ["n3"]), ("literal_or(n1|n3)", ["n3"]), ("n4", ["n2"]), ("regexp([34]$)", ["n2", "n3"])]:
            self.assertEqual(self.asked(f"max:custom{{host={hosts}}}")[0], asked, hosts)
        # A point with the tag host=n1 that was put on another node, n3 or n4, is soon found.
        for value, (host, asked) in enumerate([("n3", ["n3"]), ("n4", ["n2", "n3"])]):
            put = self.lab.run(host, "sonde", "put", "custom", str(100 + value), "host=n1", f"on={host}")
            self.assertEqual(put.returncode, 0, put.stderr)
            until(lambda: [max(a["dps"].values()) for a in self.asked("max:custom{host=n1}")[1]] == [100 + value], "it is found")
            self.assertEqual(self.asked("max:custom{host=n1}")[0], asked)
        # Once a query without the new host has found a new series, a query with it finds it, too.
        for i in range(3):
            for host in ("n3", "n4"):
                self.lab.run(host, "sonde", "put", "custom", "1", f"host=x{i}", f"by={host}")
                until(lambda: len(self.asked(f"none:custom{{by={host}}}")[1]) > i, "it is there")
                self.assertEqual(len(self.asked(f"max:custom{{by={host},host=x{i}}}")[1]), 1)
        self.stop(run)

    @unittest.skipUnless(TRANSPORT == "tcp", "needs hosts that share no memory")
    def test_nodes_without_shared_memory_use_tcp(self):
        """With libfabric's shm, nodes on the machine of the hub use shared memory. The data of
        other nodes come over TCP, with a message that gives the reason."""
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", "--transport=fabric:shm", "sleep", "1000")
        self.up()
        self.all_answer()
        until(lambda: all(self.hub_nodes().get(host, {}).get("transport_problem") for host in ("n2", "n3")), lambda: f"no memory is shared: {self.hub_nodes()}")
        self.data_over("tcp")
        (folder,) = self.lab.file("n1", "/tmp/sonde-0").iterdir()
        status = self.ask("/sonde/v1/status")[1]
        self.lab.run("n1", "mkdir", "/tmp/beside")
        self.started.append(self.lab.start("n1", "timeout", "60", "sonde", "relay", f"--key-file=/tmp/sonde-0/{folder.name}/key", f"--parent=10.77.0.11:{status['hub']['port']}", "--host=beside",
                                      f"--job={status['job']}", "--transport=fabric:shm", "/tmp/beside"))
        until(lambda: self.hub_nodes().get("beside", {}).get("transport") == "fabric:shm", lambda: f"memory is shared: {self.hub_nodes()}")
        for pid, text in self.lab.processes("n1", "--host=beside").items():
            if not text.startswith("timeout "):  # `timeout` ends after its child
                os.kill(pid, signal.SIGTERM)
        self.lab.run("n1", "rmdir", "/tmp/beside")
        out, err = self.stop(run)
        self.assertIn("data of n2 come over TCP, not over fabric:shm: ", err)

    @moves_no_data("the run is refused")
    def test_an_unavailable_transport_is_refused(self):
        done = self.ssh("--no-record", "--transport=fabric:cxi", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--transport=fabric:cxi: libfabric's provider cxi cannot be used here", done.stderr)
        done = self.ssh("--no-record", "--transport=carrier-pigeon", "true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("it is auto, tcp, fabric or fabric:PROVIDER", done.stderr)

    @moves_no_data("it asks for statuses")
    def test_a_restart_is_asked_for_over_http(self):
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--nodes=2", "--resilient", "--no-record", "sh", "-c", "echo $SONDE_NODELIST; exec sleep 1000")
        self.assertEqual(run.stdout.readline(), "n1,n2\n")
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [], "n2 is connected")
        asked = self.lab.run("n1", "python3", "-c", ASK.replace("headers=", "data=b'{\"hosts\":[\"n2\"]}', headers="), "/sonde/v1/reboot")
        self.assertEqual(json.loads(asked.stdout)[2]["hosts"], ["n2"], asked.stderr)
        self.assertEqual(run.stdout.readline(), "n1,n3\n")
        # Queries go to the replacement, and n2 does not count as missing.
        until(lambda: self.ask("/sonde/v1/status")[1]["missing"] == [] and [n["host"] for n in self.ask("/sonde/v1/nodes")[1]["nodes"]] == ["n1", "n3"], "n3 is in its place")
        self.up(["n1", "n3"])
        self.stop(run)

    @moves_no_data("it is about pings")
    def test_a_clock_that_is_off_is_warned_of_once(self):
        """n2's clock is 250 ms ahead."""
        skewed = self.script(f'[ $(hostname) = n2 ] && export SKEW_MS=250 LD_PRELOAD=/mnt/bin/{os.path.basename(SKEW)}\nexec /mnt/bin/sonde "$@"\n')
        run = self.start("sonde", "run", "--hosts=n[1-3]", "--no-record", f"--remote-sonde={skewed}", "sleep", "1000")
        self.assertRegex(self.warning(run), r"the clock of node n2 is 0\.2[0-9]+ s ahead of this one's")
        self.up()
        nodes = {n["host"]: n for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"]}
        self.assertLess(abs(nodes["n2"]["clock_offset_seconds"] - 0.25), 0.02 + nodes["n2"]["clock_offset_error_seconds"])
        metrics = self.lab.run("n1", "python3", "-c", ASK.replace("json.loads(answer.read())", "answer.read().decode()"), "/metrics").stdout
        self.assertRegex(metrics, r'clock_offset_seconds\{host=\\"n2\\"\} 0\.2')
        # After a reconnection, there is no second message.
        (pid,) = self.lab.processes("n2", "sonde relay ")
        os.kill(pid, signal.SIGKILL)
        self.hears(run, "the relay has ended")
        self.all_answer()
        until(lambda: "clock_offset_seconds" in next(n for n in self.ask("/sonde/v1/status")[1]["hub"]["nodes"] if n["host"] == "n2"), "its clock is known again")
        _, err = self.stop(run)
        self.assertNotIn("clock", err)

    def answers(self, host, port):
        asked = self.lab.run(host, "python3", "-c", f"import urllib.request; print(urllib.request.urlopen('http://localhost:{port}/healthz', timeout=5).read())")
        return "ok" in asked.stdout

    @moves_no_data("it is about HTTP")
    def test_a_reverse_tunnel(self):
        # Takes the port at each address of localhost, because one free address is enough for ssh.
        taken = self.lab.start("n2", "python3", "-c", "import signal, socket; a = [socket.create_server((i[4][0], 5151), family=i[0]) for i in "
                          "socket.getaddrinfo(None, 5151, type=socket.SOCK_STREAM)]; print('up', flush=True); signal.pause()")
        self.started.append(taken)
        self.assertEqual(taken.stdout.readline(), "up\n")
        run = self.start("sonde", "run", "--no-record", "--remote-tunnel-node=n2", "--remote-tunnel-port=5151", "sleep", "1000")
        # The taken port is reported once; the run goes on trying to open the tunnel.
        self.assertRegex(self.warning(run), "the tunnel from n2 is not open: .*port.* 5151")
        self.lab.signal("n2", signal.SIGKILL, "signal.pause")
        until(lambda: self.answers("n2", 5151), "the tunnel is open")
        # A killed tunnel is opened again.
        (ssh,) = self.lab.processes("n1", "ssh -N")
        os.kill(ssh, signal.SIGKILL)
        until(lambda: list(self.lab.processes("n1", "ssh -N")) not in ([], [ssh]) and self.answers("n2", 5151), "the tunnel is open again")
        _, err = self.stop(run)
        self.assertNotIn("tunnel", err)
        self.assertFalse(self.lab.processes("n1", "ssh -N"))
        until(lambda: not self.answers("n2", 5151), "the tunnel is gone with its job")

    @moves_no_data("it is about HTTP")
    def test_a_tunnel_ends_with_a_killed_launcher(self):
        run = self.start("sonde", "run", "--no-record", "--remote-tunnel-node=n2", "--remote-tunnel-port=5152", "sleep", "1000")
        until(lambda: self.answers("n2", 5152), "the tunnel is open")
        (launcher,) = self.lab.processes("n1", "sonde run")
        os.kill(launcher, signal.SIGKILL)
        run.communicate(timeout=PATIENCE_S)
        until(lambda: not self.lab.processes("n1", "ssh -N"), "the tunnel is gone")
        self.lab.signal("n1", signal.SIGKILL, "sleep 1000")
        self.assertEqual(self.lab.run("n1", "sonde", "run", "--no-record", "true").returncode, 0)
