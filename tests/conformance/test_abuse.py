"""Invalid, large, slow and many requests, and damaged files: the server answers with a clear error
or closes the connection, and goes on to serve the next client."""
import http.client
import json
import os
import resource
import shutil
import socket
import tempfile
import threading
import time
import unittest

from harness import END, PATIENCE_S, T, Case, Job, Server, Writer, continue_process, stop_process, until


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


class Requests(Case):
    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        writer.points("cpu", {"host": "a"}, [(T, 1)])
        writer.close()

    def tearDown(self):
        self.assertEqual(self.server.get("/healthz").status, 200)

    def post_query(self, **more):
        body = {"start": T, "end": END, "queries": [{"aggregator": "sum", "metric": "cpu"}], **more}
        return self.server.post("/api/query", {k: v for k, v in body.items() if v is not None})

    def test_no_query_in_the_body(self):
        for body in ("", "{", "[]", "null", "7", '"x"', "{}", '{"start":1}', "\x00", "{\"start\":1,\"queries\":{}}", "[" * 100000,
                     '{"start":' + "1" * 10000 + "}", '{"start":NaN,"queries":[]}', b"\xff\xfe", '{"start":1,"queries":[{}]}',
                     '{"start":1,"queries":[null]}', '{"start":1,"queries":[{"metric":"cpu"}]} trailing'):
            with self.subTest(str(body[:40])):
                self.assert_error(self.server.post("/api/query", body), 400, "")

    def test_members_of_the_wrong_kind(self):
        for more in ({"start": None}, {"queries": None}, {"queries": []}, {"queries": 7}, {"start": {}}, {"start": [1]}, {"start": -1},
                     {"start": END, "end": T}, {"end": {}}, {"queries": [{"aggregator": 7, "metric": "cpu"}]},
                     {"queries": [{"aggregator": "sum", "metric": 7}]}, {"queries": [{"aggregator": "sum"}]},
                     {"queries": [{"aggregator": "sum", "metric": "cpu", "downsample": "often"}]},
                     {"queries": [{"aggregator": "sum", "metric": "cpu", "downsample": 7}]},
                     {"queries": [{"aggregator": "sum", "metric": "cpu", "filters": [{"type": "nope", "tagk": "host", "filter": "*"}]}]},
                     {"queries": [{"aggregator": "sum", "metric": "cpu", "filters": [7]}]},
                     {"queries": [{"aggregator": "sum", "metric": "cpu", "filters": [{"type": "regexp", "tagk": "host", "filter": "("}]}]}):
            with self.subTest(json.dumps(more)):
                self.assert_error(self.post_query(**more), 400, "")

    def test_numbers_at_and_over_the_edge(self):
        for number in (2 ** 63 - 1, 2 ** 63, 2 ** 64, 1e300, "9223372036854775808", "1e400", "NaN", "inf", ""):
            for key in ("start", "end"):
                with self.subTest(f"{key} {number}"):
                    self.assertIn(self.post_query(**{key: number}).status, (200, 400))
            with self.subTest(f"m {number}"):
                self.assertIn(self.server.get("/api/query", {"start": number, "m": "sum:cpu"}).status, (200, 400))
        for counter_max in (2 ** 63, 2 ** 64, -1, 1e308):
            query = {"aggregator": "sum", "metric": "cpu", "rate": True, "rateOptions": {"counter": True, "counterMax": counter_max}}
            self.assertIn(self.post_query(queries=[query]).status, (200, 400))

    def test_strange_targets(self):
        for target in ("/%", "/%00", "/api/query?m=%zz", "/api/query?%", "/api/query?m=%00"):
            self.assert_error(self.server.get(target), 400, "")
        self.assert_error(self.server.get("/api/query?" + "&".join(["m=sum:cpu"] * 1025)), 413, "1024 parameters")
        self.assert_error(self.server.get("/api/query?start=1&" + "&".join(["m=sum:cpu"] * 257)), 413, "256 queries")

    def test_header_floods(self):
        for headers in ({"X": "a" * 200000}, {f"X-{i}": "a" * 100 for i in range(5000)}, {"Cookie": ";" * 100000}):
            try:
                self.assertEqual(self.server.request("GET", "/healthz", headers=headers).status, 431)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server closed the connection before the end of the body
        self.assertIn(self.server.request("GET", "/" + "a" * 200000).status, (414, 431))

    def test_headers_without_end(self):
        with connect(self.server) as s:
            s.sendall(b"GET / HTTP/1.1\r\n")
            with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                while True:
                    s.sendall(b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 100)

    def test_body_too_large(self):
        with connect(self.server) as s:  # the server refuses the length without reading a body
            s.sendall(b"POST /api/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100000000\r\n\r\n" % self.server.token.encode())
            self.assertIn(b" 413 ", s.recv(4096))
        just_right = b" " * (16 << 20)
        self.assert_error(self.server.post("/api/query", just_right), 400, "")
        # Chunked bodies, which give no length.
        for body in (iter([just_right, b" "]), iter([b"x" * 65536] * 300)):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
            connection.request("POST", "/api/query", body, {"Authorization": f"Bearer {self.server.token}"}, encode_chunked=True)
            response = connection.getresponse()
            self.assertEqual(response.status, 413)
            self.assertIn(b"body_bytes", response.read())
            connection.close()

    def test_body_without_end(self):
        with connect(self.server) as s:
            s.sendall(b"POST /api/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n" % self.server.token.encode())
            sent = 0
            with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                # The server reads a part of the body, so that it can answer, but not all.
                while sent < 256 << 20:
                    s.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                    sent += 65536
            self.assertGreater(sent, 16 << 20)

    def test_large_body_without_token_is_not_kept(self):
        answer = self.server.request("POST", "/api/query", b"x" * (8 << 20), token=False)
        self.assert_error(answer, 401, "token")

    def test_expect_continue(self):
        with connect(self.server) as s:  # refused instead of the answer "100 Continue"
            s.sendall(b"POST /api/query HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
            self.assertIn(b" 401 ", s.recv(4096))

    def test_pipelined(self):
        with connect(self.server) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 50 + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            got = b""
            while data := s.recv(65536):
                got += data
            self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 51)

    def test_clients_that_leave(self):
        request = f"GET /api/query?start=1&m=sum:cpu HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\n\r\n".encode()
        for size in range(len(request) + 1):
            with connect(self.server) as s:
                s.sendall(request[:size])


class Slow(Case):
    """Many clients send a byte now and then, or nothing; other clients are served as usual."""

    def test_one_byte_at_a_time(self):
        request = f"GET /api/version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\n\r\n".encode()
        clients = [connect(self.server) for _ in range(20)]
        for byte in request:
            for client in clients:
                client.sendall(bytes([byte]))
            self.assertEqual(self.server.get("/healthz").status, 200)
        for client in clients:
            self.assertIn(b" 200 OK", client.recv(4096))
            client.close()

    def test_idle_connections(self):
        idle = [connect(self.server) for _ in range(300)]
        for _ in range(10):
            self.assertEqual(self.server.get("/api/version").status, 200)
        counts = self.server.get("/sonde/v1/status").json["connections"]
        self.assertLessEqual(counts["open"], 256)
        self.assertGreater(counts["evicted"], 0)
        self.assertEqual(counts["refused"], 0)
        for client in idle:
            client.close()

    def served(self, path):
        """Returns the answer to a request. The server may close one of thousands of connections to
        make room, so the request is repeated, as HTTP clients do."""
        for _ in range(100):
            try:
                return self.server.get(path)
            except (http.client.RemoteDisconnected, ConnectionResetError):
                continue
        raise AssertionError(f"{path} is not served")

    def test_ten_thousand_idle_connections(self):
        """The clients keep 10,000 connections open, or as many as the machine allows a process."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = limits[1] if limits[1] != resource.RLIM_INFINITY else 1 << 20
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], min(most, 10200)), limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        count = min(10000, max(limits[0], min(most, 10200)) - 200)
        idle = []
        try:
            for i in range(count):
                idle.append(connect(self.server))
                if i % 1000 == 0:
                    self.assertEqual(self.served("/healthz").status, 200)
            self.assertEqual(self.served("/api/version").status, 200)
            counts = self.served("/sonde/v1/status").json["connections"]
            self.assertLessEqual(counts["open"], 256)
            self.assertGreaterEqual(counts["accepted"], count)
        finally:
            for client in idle:
                client.close()
        self.assertEqual(self.served("/api/version").status, 200)

    def test_half_requests(self):
        half = []
        for _ in range(300):
            client = connect(self.server)
            client.sendall(b"POST /api/query HT")
            half.append(client)
        self.assertEqual(self.server.get("/api/version").status, 200)
        for client in half:
            client.close()


class Overdue(Case):
    """With a short timeout, the server closes unfinished requests in time, even while single bytes
    arrive."""
    arguments = ("idle_timeout_s=0.3",)

    def closed(self, s):
        """Waits until the server closes the connection; sends a byte whenever nothing arrives."""
        s.settimeout(0.02)
        for _ in range(3000):
            try:
                return s.recv(4096) in (b"",) or self.closed(s)
            except (ConnectionResetError, BrokenPipeError):
                return True
            except TimeoutError:
                try:
                    s.sendall(b"a")
                except (BrokenPipeError, ConnectionResetError):
                    return True
        return False

    def test_request_line_that_trickles(self):
        with connect(self.server) as s:
            s.sendall(b"GET /")
            self.assertTrue(self.closed(s))

    def test_headers_that_trickle(self):
        with connect(self.server) as s:
            s.sendall(b"GET / HTTP/1.1\r\nX: ")
            self.assertTrue(self.closed(s))

    def test_body_that_trickles(self):
        with connect(self.server) as s:
            s.sendall(f"POST /api/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\nContent-Length: 100000\r\n\r\n".encode())
            self.assertTrue(self.closed(s))

    def test_idle(self):
        with connect(self.server) as s:
            self.assertEqual(s.recv(1), b"")

    def test_not_http(self):
        for junk in (b"\0" * 1000, b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 100,
                     b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /api/query HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                     b"POST /api/query HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST /api/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(junk[:20]), connect(self.server) as s:
                s.sendall(junk)
                s.shutdown(socket.SHUT_WR)
                try:
                    while data := s.recv(4096):
                        self.assertNotIn(b" 200 ", data)
                except ConnectionResetError:
                    pass

    def test_counted(self):
        with connect(self.server) as s:
            s.recv(1)
        self.assertGreater(self.server.get("/sonde/v1/status").json["connections"]["timed_out"], 0)


class Busy(Case):
    """Many clients at once are all served correctly."""

    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        for i in range(20):
            writer.points("cpu", {"host": f"h{i}"}, [(T + k, i) for k in range(300)])
        writer.close()

    def test_together(self):
        wrong = []

        def client(number):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
            for i in range(20):
                host = (number + i) % 20
                connection.request("GET", f"/api/query?start={T}&end={END}&m=sum:cpu%7Bhost=h{host}%7D", headers={"Authorization": f"Bearer {self.server.token}"})
                response = connection.getresponse()
                body = json.loads(response.read())
                if response.status != 200 or set(body[0]["dps"].values()) != {host} or len(body[0]["dps"]) != 300:
                    wrong.append(body)
            connection.close()
        threads = [threading.Thread(target=client, args=(n,)) for n in range(32)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


    def test_three_hundred_at_once(self):
        """A client opens more connections than the server serves at once for one client, as a
        dashboard does for its panels. Some wait, and all are served."""
        speaks_telnet = Server("agent=/nowhere/agent.sock", self.folder)
        self.addCleanup(speaks_telnet.stop)
        path, headers = f"/api/query?start={T}&end={END}&m=sum:cpu", {"Authorization": f"Bearer {self.server.token}"}

        def counts_when_all_have_left(server):
            while True:
                counts = server.get("/sonde/v1/status").json["connections"]
                if counts["open"] == 1 and not counts["waiting"]:
                    return counts

        for server in (self.server, speaks_telnet):
            def answered(connection, connected=None):
                try:
                    response = connection.getresponse()
                except ConnectionResetError:
                    # After a second without a request, a connection makes room for one that waits.
                    # It may close just before its request arrives; a client then sends it again.
                    if connected is None or time.monotonic() - connected < 1:
                        raise
                    connection.request("GET", path, headers=headers)
                    response = connection.getresponse()
                self.assertEqual((response.status, len(json.loads(response.read())[0]["dps"])), (200, 300))
            with self.subTest("all connect, then all ask", telnet=server is speaks_telnet):
                connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S) for _ in range(300)]
                connected = time.monotonic()
                for connection in connections:
                    connection.connect()
                for connection in connections:
                    connection.request("GET", path, headers=headers)
                for connection in connections:
                    answered(connection, connected)
                    connection.close()
                counts_when_all_have_left(server)
            with self.subTest("each connects and asks, again and again", telnet=server is speaks_telnet):
                wrong = []

                def client():
                    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
                    try:
                        for _ in range(3):
                            connection.request("GET", path, headers=headers)
                            answered(connection)
                    except Exception as error:
                        wrong.append(repr(error))
                    connection.close()
                threads = [threading.Thread(target=client) for _ in range(300)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                self.assertEqual(wrong, [])
                counts = counts_when_all_have_left(server)
                self.assertEqual((counts["refused"], counts["evicted"]), (0, 0))


class Limits(Case):
    """With a low limit, each error names the limit."""

    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        for i in range(50):
            writer.points("cpu", {"host": f"h{i}"}, [(T + k, k + i / 7) for k in range(2000)])
            writer.points("step_seconds", {"host": f"h{i}"}, [(T + k, 1 + k % 7 / 70) for k in range(1000)])
        writer.close()

    def limited(self, *arguments):
        server = Server(*arguments, self.folder)
        self.addCleanup(server.stop)
        return server

    def ask(self, server):
        return server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=*}"})

    def test_answer(self):
        server = self.limited("answer_bytes=100000")
        self.assert_error(self.ask(server), 413, "answer_bytes")
        self.assertEqual(server.get("/api/version").status, 200)

    def test_memory(self):
        server = self.limited("query_memory_bytes=300000")
        self.assert_error(self.ask(server), 413, "memory")
        self.assertEqual(server.get("/api/version").status, 200)

    def test_memory_of_all(self):
        server = self.limited("total_memory_bytes=1000000")
        narrow = {"start": T, "end": T + 9, "m": "sum:cpu{host=*}"}
        for _ in range(3):  # repeated, because a failed request must release its memory, too
            self.assert_error(self.ask(server), 503, "total_memory_bytes")
            self.assertEqual(server.get("/api/query", narrow).status, 200)
            native = {"start": T, "end": END, "queries": [{"aggregator": "none", "metric": "cpu"}]}
            self.assert_error(server.post("/sonde/v1/query", native), 503, "total_memory_bytes")

    def test_memory_of_findings(self):
        listing = {"match": "step_seconds", "points": "", "limit": 0}
        server = self.limited("total_memory_bytes=2000000")
        for _ in range(3):  # the list of series fits into memory, but not the findings' values
            self.assertEqual(server.get("/sonde/v1/series", listing).status, 200)
            self.assert_error(server.get("/sonde/v1/findings"), 503, "total_memory_bytes")
        server = self.limited("total_memory_bytes=50000000")
        for _ in range(30):  # each request takes more than 2 MB, and releases them
            measures = server.get("/sonde/v1/findings").json["measures"]
            self.assertEqual([(m["metric"], m["members"]) for m in measures], [("step_seconds", 50)])

    def test_deadline(self):
        server = self.limited("query_deadline_s=0.000001")
        answer = self.ask(server)
        self.assertEqual((answer.status, answer.json["error"]["code"]), (408, 408))
        self.assertEqual(server.get("/api/version").status, 200)

    def test_body(self):
        server = self.limited("body_bytes=1000")
        self.assert_error(server.post("/api/query", b"x" * 1001), 413, "body_bytes")
        self.assert_error(server.post("/api/query", b"x" * 1000), 400, "")

    def test_header(self):
        server = self.limited("header_bytes=1000")
        self.assertEqual(server.request("GET", "/healthz", headers={"X": "a" * 600}).status, 200)
        self.assertEqual(server.request("GET", "/healthz", headers={"X": "a" * 1000}).status, 431)

    def open_connections(self, server):
        # The server may close this connection to make room for later ones, so it is retried. A
        # hanging request would end with a timeout.
        while True:
            try:
                return server.get("/sonde/v1/status").json["connections"]["open"]
            except (http.client.RemoteDisconnected, ConnectionResetError):
                pass

    def flood(self, server):
        for _ in range(3):
            idle = [connect(server) for _ in range(200)]
            for client in idle:
                client.sendall(b"G")  # so that the server recognises their protocol
            self.assertLessEqual(self.open_connections(server), 3)
            for client in idle:
                client.close()
            # The server accepts some only now. Nobody can tell whose they were, so they do not
            # count as ours.
            until(lambda: self.open_connections(server) == 1, "connections of closed clients stay open")

    def test_connections(self):
        self.flood(self.limited("connections=4", "connections_per_client=3"))

    def test_connections_where_telnet_is_spoken(self):
        job = Job("connections=4", "connections_per_client=3")
        self.addCleanup(job.stop)
        self.flood(job.server)


class Stuck(unittest.TestCase):
    """The agent does not answer, so some requests hang. They delay neither /healthz nor queries."""

    def test_others_are_served(self):
        job = Job("slow_after_s=0.01")
        self.addCleanup(job.stop)
        stop_process(job.agent.pid)
        point = json.dumps({"metric": "m", "timestamp": T, "value": 1, "tags": {"host": "a"}}).encode()
        stuck = []
        for _ in range(10):
            client = connect(job.server)
            client.sendall(b"POST /api/put HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                           % (job.server.token.encode(), len(point), point))
            stuck.append(client)
        try:
            for _ in range(20):
                for path in ("/healthz", "/healthz/", "/healthz//"):
                    self.assertEqual(job.server.get(path, token=False).status, 200)
                self.assertEqual(job.server.get("/api/query", {"start": T, "end": END, "m": "sum:none"}).status, 400)
            for client in stuck:
                client.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    client.recv(1)
        finally:
            continue_process(job.agent.pid)
        for client in stuck:
            client.setblocking(True)
            self.assertIn(b" 204 ", client.recv(4096))
            client.close()


class Files(unittest.TestCase):
    """The server copes with files that appear, disappear, or become damaged."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sonde-conformance-")
        self.addCleanup(shutil.rmtree, self.folder)

    def serve(self, *paths):
        server = Server(*paths)
        self.addCleanup(server.stop)
        return server

    def record(self, name, host="a"):
        writer = Writer(f"{self.folder}/{name}")
        writer.points("cpu", {"host": host}, [(T + i, i) for i in range(1000)])
        writer.close()
        return writer.path

    def hosts(self, server):
        return server.get("/api/suggest", "type=tagv").json

    def test_empty_folder_that_fills(self):
        server = self.serve(self.folder)
        self.assertEqual(self.hosts(server), [])
        self.assertEqual(server.get("/api/query", f"start={T}&m=sum:cpu").json["error"]["message"], "No such name for 'metrics': 'cpu'")
        self.record("one.sonde")
        until(lambda: self.hosts(server) == ["a"], "the recordings are not as expected")
        path = self.record("two.sonde", "b")
        until(lambda: self.hosts(server) == ["a", "b"], "the recordings are not as expected")
        os.unlink(path)
        until(lambda: self.hosts(server) == ["a"], "the recordings are not as expected")

    def test_bad_files_are_named_and_left_out(self):
        good = self.record("good.sonde")
        with open(good, "rb") as f:
            whole = f.read()
        for name, data in (("empty", b""), ("short", whole[:10]), ("junk", b"#!/bin/sh\n" * 1000), ("zeros", bytes(len(whole)))):
            with open(f"{self.folder}/{name}.sonde", "wb") as f:
                f.write(data)
            os.utime(f.name, (T, T))  # an old file, unlike one that a program is just making
        os.mkdir(f"{self.folder}/folder.sonde")
        server = self.serve(self.folder)
        self.assertEqual(self.hosts(server), ["a"])
        status = server.get("/sonde/v1/status").json
        bad = {os.path.basename(f["path"]): f["error"] for f in status["files"] if f["state"] == "unreadable"}
        self.assertEqual(set(bad), {"empty.sonde", "short.sonde", "junk.sonde", "zeros.sonde"})
        self.assertTrue(all(bad.values()))
        self.assertEqual(status["files_unreadable"], 4)

    def test_damage_costs_only_itself(self):
        self.record("good.sonde")
        path = self.record("bad.sonde", "b")
        size = os.path.getsize(path)
        for at in range(4096, size, max(1, size // 40)):
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(b"\xde\xad\xbe\xef" * 4)
        server = self.serve(self.folder)
        answer = server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=a}"})
        self.assertEqual(len(answer.json[0]["dps"]), 1000)
        self.assertEqual(server.get("/sonde/v1/status").status, 200)
        self.assertIn(server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=b}"}).status, (200, 400))

    def test_file_that_is_cut_while_it_is_served(self):
        self.record("good.sonde")
        path = self.record("cut.sonde", "b")
        server = self.serve(self.folder)
        self.assertEqual(self.hosts(server), ["a", "b"])
        os.truncate(path, os.path.getsize(path) // 2)
        for _ in range(3):
            self.assertIn(server.get("/api/query", {"start": T, "end": END, "m": "sum:cpu{host=*}"}).status, (200, 400))
            self.assertEqual(server.get("/sonde/v1/status").status, 200)

    def test_single_files(self):
        one, two = self.record("one.sonde"), self.record("two.sonde", "b")
        self.record("three.sonde", "c")
        self.assertEqual(self.hosts(self.serve(one, two)), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
