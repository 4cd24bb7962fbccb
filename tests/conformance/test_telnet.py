"""Tests OpenTSDB's telnet protocol, which the server speaks on the port of HTTP."""
import socket
import unittest

from harness import PATIENCE_S, T, TOKEN, Case, Job


class Client:
    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        self.lines = self.socket.makefile("r")

    def say(self, text):
        self.socket.sendall(text.encode())

    def hear(self):
        return self.lines.readline()

    def end(self):
        """Ends the input; returns all further output."""
        self.socket.shutdown(socket.SHUT_WR)
        said = self.lines.read()
        self.lines.close()
        self.socket.close()
        return said


class Telnet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.job = Job()
        cls.addClassCleanup(cls.job.stop)
        cls.server = cls.job.server

    def client(self, admitted=True):
        client = Client(self.server)
        if admitted:
            client.say(f"auth {TOKEN}\n")
        return client

    def stored(self, metric):
        answer = self.server.get("/api/query", {"start": T - 1000, "end": T + 100000, "m": f"sum:{metric}"})
        self.assertEqual(answer.status, 200, answer.raw)
        return answer.json[0]["dps"]

    def test_put_is_silent(self):
        client = self.client()
        # The last line has no newline.
        client.say(f"put silent {T} 1 rank=0\nput silent {T + 1} 2.5 rank=0\r\nput silent {T + 2} 3 rank=0")
        self.assertEqual(client.end(), "")
        self.assertEqual(self.stored("silent"), {str(T): 1, str(T + 1): 2.5, str(T + 2): 3})

    def test_many(self):
        client = self.client()
        for start in range(0, 50000, 1000):
            client.say("".join(f"put many {T + i} {i} rank=0\n" for i in range(start, start + 1000)))
        self.assertEqual(client.end(), "")
        self.assertEqual(self.stored("many"), {str(T + i): i for i in range(50000)})

    def test_in_pieces(self):
        client = self.client()
        for byte in f"put pieces {T} 7 rank=0\n":
            client.say(byte)
        self.assertEqual(client.end(), "")
        self.assertEqual(self.stored("pieces"), {str(T): 7})

    def test_words(self):
        client = self.client()
        for line, answer in ((f"put a {T} 1", "put: illegal argument: not enough arguments (need least 4, got 3)\n"),
                             ("put", "put: illegal argument: not enough arguments (need least 4, got 0)\n"),
                             ("help", "available commands: auth exit help put stats version\n"), ("fetch", "unknown command.  Try `help'.\n")):
            client.say(line + "\n")
            self.assertEqual(client.hear(), answer)
        for line, words in ((f"put a {T} one rank=0", "'one' is not a number"), ("put a soon 1 rank=0", "soon"), (f"put a(b {T} 1 rank=0", "name"),
                            (f"put a {T} 1 rank", "tag")):
            client.say(line + "\n")
            heard = client.hear()
            self.assertTrue(heard.startswith("put: illegal argument: "), heard)
            self.assertIn(words, heard)
        client.say("version\n")
        self.assertTrue(client.hear().startswith("sonde "))
        client.say("\nstats\n")
        for name in ("tsd.connectionmgr.connections", "tsd.connectionmgr.connections.total", "tsd.uptime"):
            self.assertRegex(client.hear(), rf"^{name} \d+ \d+\n$")
        client.say(f"exit\nput after {T} 1 rank=0\n")
        self.assertEqual(client.hear(), "")
        client.lines.close()
        client.socket.close()
        self.assertEqual(self.server.get("/api/query", {"start": T, "m": "sum:after"}).status, 400)

    def test_token(self):
        client = self.client(admitted=False)
        client.say(f"put secret {T} 1 rank=0\nauth wrong\nput secret {T} 1 rank=0\n")
        for words in ("put: a token is needed", "auth: this is not", "put: a token is needed"):
            self.assertIn(words, client.hear())
        client.say(f"auth {TOKEN}\nput admitted {T} 1 rank=0\n")
        self.assertEqual(client.end(), "")
        self.assertEqual(self.stored("admitted"), {str(T): 1})
        self.assertEqual(self.server.get("/api/query", {"start": T, "m": "sum:secret"}).status, 400)

    def test_a_line_without_end(self):
        client = self.client()
        client.say("put " + "a" * 70000)
        self.assertEqual(client.hear(), "error: a line may have 65000 bytes\n")
        client.lines.close()
        client.socket.close()

    def test_http_beside_it(self):
        clients = [self.client() for _ in range(20)]
        silent = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(20)]
        for _ in range(50):
            self.assertEqual(self.server.get("/api/version").status, 200)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as s:
            # Input that is not telnet counts as HTTP; the server refuses it, or closes the
            # connection.
            s.sendall(b"\x16\x03\x01\x00\n\r\n\r\n")
            self.assertNotIn(b"unknown command", s.recv(1000))
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as s:
            s.sendall(b"G")
            s.sendall(b"ET /healthz HTTP/1.0\r\n\r\n")
            self.assertRegex(s.recv(1000), rb"^HTTP/1\.[01] 200 ")
        for s in silent:
            s.close()
        for client in clients:
            self.assertEqual(client.end(), "")


class AgentGone(unittest.TestCase):
    def test_it(self):
        job = Job()
        self.addCleanup(job.stop)
        client = Client(job.server)
        client.say(f"auth {TOKEN}\n")
        job.kill_agent()
        client.say(f"put a {T} 1 rank=0\n")
        self.assertEqual(client.hear(), "put: the agent does not take points now\n")
        self.assertEqual(client.end(), "")


class Limits(unittest.TestCase):
    def test_silent_ones_make_room(self):
        job = Job("connections=8", "connections_per_client=8")
        self.addCleanup(job.stop)
        silent = [socket.create_connection(("127.0.0.1", job.server.port)) for _ in range(100)]
        self.assertEqual(job.server.get("/api/version").status, 200)
        for s in silent:
            s.close()

    def test_time(self):
        job = Job("idle_timeout_s=0.2")
        self.addCleanup(job.stop)
        with socket.create_connection(("127.0.0.1", job.server.port), timeout=PATIENCE_S) as s:
            self.assertEqual(s.recv(1), b"")


class Recording(Case):
    def test_no_telnet(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as s:
            s.sendall(b"version\r\n\r\n")
            self.assertNotIn(b"telnet", s.recv(1000))  # an HTTP error, or nothing


if __name__ == "__main__":
    unittest.main()
