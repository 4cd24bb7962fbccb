"""Programs for the Dragon Telemetry Service find the same interface in sonde: the checks of
dragon_checks.py, whose answers dragon_original.sh gets from the original."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

from program import Program, Recording, main
from place import free_port  # noqa: E402, I001

HERE = pathlib.Path(os.environ["CHECKS"])

# sonde's deliberate differences (docs/dragon.md): the answer here, and the reason.
DIFFERENCES = {
    "name_long": ([[[1.0]], ["m" * 300], False], "a name of more than 255 bytes is shortened: get_metrics() has the short form"),
}


class SideBySide(Program):
    maxDiff = None

    def test_every_fact(self):
        answers = self.root / "answers.json"
        record = self.root / "recording"
        dumps = self.root / "dumps"
        dumps.mkdir()
        result = self.sonde("run", "--quiet", "-l", 2, "--record", record, "--dump-dir", dumps, "--", sys.executable, HERE / "dragon_checks.py", "sonde", answers)
        self.assertEqual(result.returncode, 0, result.stderr)
        found, wanted = json.loads(answers.read_text()), json.loads((HERE / "dragon_answers.json").read_text())
        self.assertEqual(sorted(found), sorted(wanted), "checks and recorded answers: run dragon_original.sh")
        for name, (answer, why) in DIFFERENCES.items():
            self.assertNotEqual(wanted[name], answer, f"{name} is no difference any more: {why}")
            wanted[name] = answer
        differ = [name for name in wanted if found[name] != wanted[name]]
        self.assertEqual({name: found[name] for name in differ}, {name: wanted[name] for name in differ})


class Port(Program):
    """Programs that import dragon.telemetry write to the port of Dragon's node server, without a
    token."""

    TEXT = """
        import json, os, pwd, socket, sys, time, urllib.error, urllib.request
        base = f"http://localhost:{sys.argv[1]}"
        def ask(path, body=None, **headers):
            data = None if body is None else json.dumps(body).encode()
            try:
                with urllib.request.urlopen(urllib.request.Request(base + path, data, headers)) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, None
        deadline = time.monotonic() + 300
        while True:
            try: ready = ask("/api/ready"); break
            except OSError:
                if time.monotonic() > deadline: raise
        print(json.dumps([
            os.environ["DRAGON_TELEMETRY_LEVEL"], ready,
            ask("/api/metrics", {"dps": [{"metric": "loss %", "value": 0.5, "tags": {"rank": 3}}], "timestamp": int(time.time())}),
            ask("/api/set_shutdown"), ask("/api/tsdb_cleanup", {"start_time": 1}),
            [ask(path)[0] for path in ("/api/query?start=1h-ago&m=none:x", "/api/aggregators", "/", "/sonde/v1/status", "/api/nothing")],
            [ask("/api/put", {"metric": "x", "value": 1, "timestamp": 1, "tags": {"a": "b"}})[0], ask("/sonde/v1/collectors", {})[0]],
            ask("/api/metrics", {"dps": []}, **{"Sec-Fetch-Site": "cross-site"})[0],       # a page of a browser
            ask("/api/metrics", {"dps": []}, Host="attacker.example")[0],
        ]))
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as telnet:      # no lines
            telnet.sendall(b"put lines 1 1 a=b\\r\\n\\r\\n")
            assert b"400" in telnet.recv(4096)[:40]
        if os.getuid() == 0:
            os.setuid(pwd.getpwnam("nobody").pw_uid)
            print(json.dumps([ask("/api/metrics", {"dps": []})[0], ask("/api/ready")[0]]))
    """

    def test_points_without_a_token(self):
        port = free_port()
        self.write(self.TEXT)
        record = self.root / "recording"
        done = self.sonde("run", "--quiet", "-l", 2, "--record", record, f"--tsdb-server-port={port}", "--", sys.executable, self.program, port)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, *other = done.stdout.splitlines()
        self.assertEqual(json.loads(first), [
            "2", [200, {"is_ready": True}], [201, {"success": 1, "failed": 0, "errors": []}], [200, {"success": 1, "failed": 0, "errors": []}],
            [201, {"success": 0, "failed": 0, "errors": []}], [404] * 5, [404] * 2, 403, 403])
        if os.getuid() == 0:
            self.assertEqual(json.loads(other[0]), [403, 403])
        [file] = record.glob("*.sonde")
        self.recording = Recording(str(file))
        self.assertEqual((self.values("loss　％", rank="3"), self.series("lines")), ([0.5], {}))

    def test_a_port_that_is_taken_is_no_reason_to_stop(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.sonde("run", "--quiet", "-l", 1, "--no-record", f"--tsdb-server-port={port}", "--", "sh", "-c", "echo on")
        self.assertEqual((done.returncode, done.stdout), (0, "on\n"))
        self.assertIn("programs that import dragon.telemetry cannot write", done.stderr)


class Widget(Program):
    TEXT = """
        import json, time, sonde
        from sonde import widget
        w = widget.DragonTelemetryWidget()
        t = sonde.Telemetry()
        for gpu in (0, 1): t.add_data("heat", 60 + gpu, tagk="gpu", tagv=str(gpu))
        t.add_data("plain", 7)
        deadline = time.monotonic() + 300
        while not (w.get_data("plain") and len(w.get_data("heat")) == 2 and w.get_data()) and time.monotonic() < deadline: pass
        print(json.dumps([w.get_start_time() <= time.time(), {"heat", "plain", "used_RAM"} <= w.get_metrics(),
                          [[s["tags"].get("gpu"), *s["dps"].values()] for s in w.get_data("heat") + w.get_data("plain")], w.get_data()[0]["metric"],
                          len(w.get_data("heat", time.time() + 1000))]))
        try:
            import matplotlib
        except ImportError:
            raise SystemExit
        matplotlib.use("agg")
        [axes] = w.render("heat", 0.0).axes
        print(json.dumps([axes.get_title(), sorted(line.get_label().partition(" ")[2] for line in axes.lines), [list(line.get_ydata()) for line in axes.lines]]))
    """

    def test_data_and_pictures(self):
        first, *picture = self.run_it(self.TEXT, level=2).splitlines()
        self.assertEqual(json.loads(first), [True, True, [["0", 60], ["1", 61], [None, 7]], "num_running_processes", 0])
        if picture:
            self.assertEqual(json.loads(picture[0]), ["Metric: heat", ["(gpu:0)", "(gpu:1)"], [[60], [61]]])

    def test_without_a_job(self):
        self.write("from sonde import widget\nwidget.DragonTelemetryWidget().get_metrics()")
        done = subprocess.run([sys.executable, str(self.program)], env=self.env, capture_output=True, text=True)
        self.assertIn("RuntimeError: cannot connect to the job's telemetry: no job runs here", done.stderr)


class Restart(Program):
    def test_the_first_node_stays_and_no_message_says_otherwise(self):
        """The client needs no connect() first; after the restart, Dragon's System().restarted is
        true."""
        self.write("""
            import os, socket, time, sonde
            print(os.environ["SONDE_RESTART"], "DRAGON_RESILIENT_RESTART" in os.environ, flush=True)
            if os.environ["SONDE_RESTART"] == "0":
                sonde.AnalysisClient().reboot(exclude_hostnames=[socket.gethostname().split(".")[0]])
                time.sleep(600)
        """)
        result = self.sonde("run", "--quiet", "-l", 1, "--no-record", "--resilient", "--", sys.executable, self.program)
        self.assertEqual((result.returncode, result.stdout), (0, "0 False\n1 True\n"), result.stderr)
        self.assertIn("but the first node always stays", result.stderr)
        self.assertIn("a restart is requested: starting it again on 1 node", result.stderr)


class Names(Program):
    def test_any_name_is_stored_by_the_rule(self):
        """Every way to emit from Python is used; each name is found as written, and in its stored
        form."""
        out = self.run_it("""
            import json, sonde
            sonde.gauge("g%")(1); sonde.emit("e e", 2); sonde.log({"l(0)": 3}); sonde.counter("c=c")(4)
            sonde.Telemetry().add_data("t*", 5); sonde.emit("tagged", 6, **{"my key": "v w"})
            with sonde.AnalysisClient() as client:
                def last(name): return next((s.values[-1] for s in client.query(metric=name)), None)
                deadline = __import__("time").monotonic() + 300
                names = ["g%", "e e", "l(0)", "c=c", "t*"]
                while __import__("time").monotonic() < deadline:
                    try: found = [last(n) for n in names]
                    except sonde.ClientError: continue
                    if None not in found: break
                print(json.dumps([found, sorted(set(names) & client.get_metrics()), client.get_data("tagged", tags="my key")[0]["tags"]["my key"], sonde.dropped()]))
        """)
        self.assertEqual(json.loads(out), [[1, 2, 3, 4, 5], sorted(["g%", "e e", "l(0)", "c=c", "t*"]), "v w", 0])
        self.assertEqual([self.values(n)[-1:] for n in ("g％", "e　e", "l（0）", "c＝c", "t＊")], [[1], [2], [3], [4], [5]])


if __name__ == "__main__":
    main()
