"""sonde.AnalysisClient with Dragon's names and signatures."""

import inspect
import json

from client_place import Asking
from place import main, server_proof, until

import sonde


class Dragon(Asking):
    def test_signatures(self):
        names = ("connect", "get_metrics", "get_data", "db_dump", "reboot")
        plain = {name: [(p.name, p.kind, p.default) for p in inspect.signature(getattr(sonde.AnalysisClient, name)).parameters.values()][1:] for name in names}
        either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        self.assertEqual(plain, {
            "connect": [("timeout", either, None)],
            "get_metrics": [],
            "get_data": [("metrics", either, inspect.Parameter.empty), ("tags", either, None), ("start_time", either, None)],
            "db_dump": [],
            "reboot": [("exclude_huids", keyword, None), ("exclude_hostnames", keyword, None)],
        })

    def test_before_connect(self):
        client = sonde.AnalysisClient()
        for call in (client.get_metrics, lambda: client.get_data("x"), client.db_dump):
            with self.assertRaisesRegex(RuntimeError, "connect"):
                call()
        with self.assertRaisesRegex(RuntimeError, "no job runs here"):
            client.connect()
        with self.assertRaisesRegex(RuntimeError, "no job runs here"):
            client.connect(timeout=0.2)
        with self.assertRaisesRegex(RuntimeError, "refused|connect"):
            sonde.AnalysisClient("http://127.0.0.1:1").connect()

    def test_inside_of_a_job(self):
        out = json.loads(self.run_it("""
            m = sonde.gauge("loss", tags={"rank": 3})
            now = time.time_ns() - 2 * 10**9    # no point is ahead of the clock
            for i in range(4): m.emit(i, now // 10**9 * 10**9 + i * 4 * 10**8)     # 0, 0.4, 0.8, 1.2 s
            m.emit(9, now - 400 * 10**9)
            sonde.emit("other", 1)
            client = sonde.AnalysisClient()
            client.connect(timeout=300)
            while not {"loss", "other"} <= client.get_metrics(): time.sleep(0.01)
            while len(client.get_data("loss", start_time=now / 1e9 - 500)[0]["dps"]) < 3: time.sleep(0.01)
            print(json.dumps([now // 10**9, client.get_data("loss"), client.get_data(["other", "no_such", "loss"]), client.get_data("loss", {"rank": 3}),
                              client.get_data("loss", {"rank": "4"}), client.get_data([]), client.get_data("loss", start_time=now / 1e9 - 500),
                              client.get_data("loss", "rank"), client.get_data("loss", ["host", "nobody"]), client.get_data("loss", start_time=now / 1e9 + 500)]))
        """))
        second, [loss], several, [tagged], none, nothing, [longer], [by_rank], no_tag, future = out
        self.assertEqual((loss["metric"], loss["aggregateTags"], list(loss["tags"])), ("loss", [], ["host"]))
        self.assertEqual((by_rank["tags"], no_tag, future), (loss["tags"] | {"rank": "3"}, [], []))
        self.assertEqual(loss["dps"], {str(second): 2, str(second + 1): 3})
        self.assertEqual(longer["dps"], loss["dps"] | {str(second - 400): 9})
        self.assertEqual(([s["metric"] for s in several], tagged, none, nothing), (["other", "loss"], by_rank, [], []))

    def test_wrong_metrics(self):
        self.start_job()
        client = sonde.AnalysisClient()
        client.connect(timeout=300)
        for wrong in (3, None, ("loss",), {"loss"}):
            with self.assertRaises(AttributeError):
                client.get_data(wrong)

    def test_reboot(self):
        url = self.start_job()
        with sonde.AnalysisClient(url) as client:
            with self.assertRaisesRegex(RuntimeError, "cannot be restarted"):
                client.reboot(exclude_hostnames=["n2"])
            with self.assertRaisesRegex(RuntimeError, r"no hosts with the huids \[17, 18\]"):
                client.reboot(exclude_huids=[17, 18])

    def test_reboot_of_a_resilient_job(self):
        out = self.run_it("""
            import os
            if os.environ["SONDE_RESTART"] == "0":
                with sonde.AnalysisClient() as client:
                    client.reboot(exclude_hostnames="no-such-host")
                time.sleep(600)
            print("again")
        """, "-l", "1", "--no-record", "--resilient")
        self.assertEqual(out, "again\n")

    def test_dump(self):
        """The job's answers, by node."""
        import http.server
        import threading
        said = {"files": [{"host": "n1", "path": "/d/n1.sonde", "state": "copied", "points": 5, "bytes": 9, "message": ""},
                          {"host": "n2", "path": "/d/n2.sonde", "state": "failed", "points": 0, "bytes": 0, "message": "no space"},
                          {"host": "n2", "path": "/d/n2-2.sonde", "state": "copied", "points": 0, "bytes": 0, "message": ""},
                          {"host": "n3", "path": "/d/n3.sonde", "state": "unchanged", "points": 0, "bytes": 0, "message": ""}], "missing": [{"host": "n4", "reason": "connection lost"}]}
        asked = []

        class Job(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path.startswith("/sonde/v1/proof"):
                    body = server_proof(self.path, "{}:{}".format(*self.connection.getsockname()), ["abc"])
                else:
                    body = json.dumps({"nodes": []} if self.command == "GET" else said).encode()
                asked.append((self.command, self.path, self.headers["Authorization"], self.rfile.read(int(self.headers.get("Content-Length", 0)))))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            do_POST = do_GET
            
            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Job) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            with sonde.AnalysisClient(f"http://127.0.0.1:{server.server_port}/?token=abc") as client:
                nodes = client.db_dump()
            server.shutdown()
            thread.join()
        self.assertEqual(asked[-1], ("POST", "/sonde/v1/dump", "Bearer abc", b"{}"))
        self.assertEqual({node["host"]: tuple(node["result"].values()) for node in nodes}, {
            "n1": ("success", "copied: /d/n1.sonde"), "n2": ("error", "no space"), "n3": ("success", "unchanged: /d/n3.sonde"), "n4": ("error", "connection lost")})
        self.assertEqual({node["type"] for node in nodes}, {"dump"})

    def test_it_waits_for_a_job(self):
        client = sonde.AnalysisClient()
        self.start("run", "--quiet", "-l", "1", "--no-record", "--", "sleep", "600")
        client.connect(timeout=300)
        until(lambda: isinstance(client.get_metrics(), set), "an answer")
        client.close()
        with self.assertRaises(RuntimeError):
            client.get_metrics()


if __name__ == "__main__":
    main()
