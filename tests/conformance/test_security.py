"""Tests access with tokens, cookies and host names, and the addresses on which servers listen."""
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

from harness import PATIENCE_S, TOKEN, Case, Server

PATHS = ("/", "/sonde/v1/status", "/api/query", "/api/suggest", "/api/search/lookup", "/api/aggregators", "/api/config/filters", "/api/version",
         "/api/nothing", "/api/v7/query")


class WithToken(Case):
    def ask(self, target, **headers):
        return self.server.request("GET", target, headers={k.replace("_", "-"): v for k, v in headers.items()}, token=False)

    def test_nothing_without_it(self):
        for path in PATHS:
            for method in ("GET", "POST", "DELETE"):
                answer = self.server.request(method, path, token=False)
                self.assert_error(answer, 401, "token")
                self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"))

    def test_health_needs_none(self):
        answer = self.ask("/healthz")
        self.assertEqual((answer.status, answer.raw), (200, b"ok\n"))
        self.assert_error(self.server.request("POST", "/healthz", token=False), 405, "Method")

    def test_ways_to_give_it(self):
        cookie = self.ask(f"/?token={TOKEN}", Accept="text/html").headers["Set-Cookie"]
        self.assertRegex(cookie, rf"^sonde_session_{self.server.port}=[0-9a-f]{{64}}; HttpOnly; SameSite=Strict$")
        for headers in ({"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer {TOKEN}"}, {"Cookie": f"x=y; {cookie.split(';')[0]}"}):
            self.assertEqual(self.ask("/api/version", **headers).status, 200)
        answer = self.ask(f"/api/version?token={TOKEN}")
        self.assertEqual(answer.status, 200)
        self.assertIsNone(answer.headers["Set-Cookie"])

    def test_wrong_ones(self):
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), TOKEN[::-1]):
            for answer in (self.ask("/api/version", Authorization=f"Bearer {wrong}"), self.ask("/api/version", Cookie=f"sonde_session_{self.server.port}={wrong}"),
                           self.ask(f"/api/version?token={wrong}")):
                self.assert_error(answer, 401, "token")
                self.assertIsNone(answer.headers["Set-Cookie"])

    def test_browser_is_sent_on(self):
        for target, location in ((f"/?token={TOKEN}", "./"), (f"/api/query?m=a&token={TOKEN}&start=1", "/api/query?m=a&start=1"),
                                 (f"//elsewhere.example/?token={TOKEN}", "/elsewhere.example/")):
            answer = self.ask(target, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
            self.assertEqual((answer.status, answer.headers["Location"]), (303, location))
            self.assertIn(f"sonde_session_{self.server.port}=", answer.headers["Set-Cookie"])
            self.assertNotIn(TOKEN, str(answer.headers))

    def test_status_does_not_tell_it(self):
        self.assertNotIn(TOKEN.encode(), self.server.get("/sonde/v1/status").raw)


class WithoutToken(Case):
    token = None

    def ask(self, **headers):
        return self.server.request("GET", "/api/version", headers={k.replace("_", "-"): v for k, v in headers.items()})

    def test_only_by_its_own_name(self):
        for host in (f"localhost:{self.server.port}", "127.0.0.1", "[::1]:4242", "LOCALHOST"):
            self.assertEqual(self.ask(Host=host).status, 200)
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0"):
            self.assert_error(self.ask(Host=host), 403, "own name")

    def test_not_for_other_sites(self):
        for site in ("cross-site", "same-site"):
            self.assert_error(self.ask(Sec_Fetch_Site=site), 403, "other sites")
        self.assert_error(self.ask(Origin="http://localhost:1"), 403, "other sites")
        for site in ("same-origin", "none"):
            self.assertEqual(self.ask(Sec_Fetch_Site=site).status, 200)


class Starting(Case):
    """The process of the server: its output on the control descriptor, and its end."""

    def refused(self, *arguments, token=TOKEN):
        server = Server(*arguments, token=token)
        self.assertEqual(server.stop(), 1)
        self.assertTrue(server.line.startswith("error "), server.line)
        return server.line

    def test_other_addresses_need_a_token(self):
        for address in ("0.0.0.0", "::", "192.0.2.1"):
            self.assertIn("without a token", self.refused(f"listen={address}", self.folder, token=None))

    def test_all_addresses_with_a_token(self):
        with tempfile.TemporaryFile("w+") as said:
            server = Server("listen=0.0.0.0", self.folder, stderr=said)
            self.addCleanup(server.stop)
            said.seek(0)
            self.assertIn("without TLS", said.read())
        self.assertEqual(server.get("/api/version").status, 200)
        self.assertEqual(server.get("/api/version", token=False).status, 401)

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("this machine has no IPv6")
        server = Server("listen=::1", self.folder, token=None)
        self.addCleanup(server.stop)
        connection = http.client.HTTPConnection("::1", server.port, timeout=PATIENCE_S)
        connection.request("GET", "/api/version")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_bad_options(self):
        self.assertIn("cannot open /nowhere", self.refused("/nowhere"))
        self.assertIn("the token has to", self.refused(self.folder, token="a;b"))
        self.assertIn("cannot listen on", self.refused("listen=no such host", self.folder))

    def test_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assertEqual(self.refused(f"port={port}", "exact=1", self.folder),
                             f"error port {port} is taken by another program; choose another with --port")
            server = Server(f"port={port}", self.folder)
            self.addCleanup(server.stop)
            self.assertGreater(server.port, port)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_what_ends_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server(self.folder)
            server.process.send_signal(number)
            self.assertEqual(server.process.wait(timeout=PATIENCE_S), 0)
            server.process.stdout.close()
        self.assertEqual(Server(self.folder).stop(), 0)  # closes the control descriptor

    def test_control_over_a_socket(self):
        ours, theirs = socket.socketpair()
        with ours:
            process = subprocess.Popen([os.environ["SONDE_SERVE"], self.folder], stdout=theirs)
            theirs.close()
            self.assertTrue(ours.recv(100).startswith(b"ready "))
            ours.sendall(b"what we say is not listened to")
        self.assertEqual(process.wait(timeout=PATIENCE_S), 0)

    def test_idle_clients_do_not_hold_it_up(self):
        server = Server(self.folder)
        idle = socket.create_connection(("127.0.0.1", server.port))
        kept = http.client.HTTPConnection("127.0.0.1", server.port)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        self.assertEqual(server.stop(), 0)
        self.assertEqual(idle.recv(1), b"")
        idle.close()
        kept.close()


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed, so no certificate can be made")
class Tls(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cert, cls.key = f"{cls.folder}/cert.pem", f"{cls.folder}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", cls.key, "-out", cls.cert,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        os.chmod(cls.key, 0o600)

    def refused(self, *arguments):
        server = Server(*arguments, self.folder)
        self.assertEqual(server.stop(), 1)
        return server.line

    def test_https(self):
        server = Server(f"cert={self.cert}", f"key={self.key}", self.folder)
        self.addCleanup(server.stop)
        context = ssl.create_default_context(cafile=self.cert)
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_S, context=context)
        self.addCleanup(connection.close)
        for target, headers, status in (("/api/version", {}, 401), ("/api/version", {"Authorization": f"Bearer {TOKEN}"}, 200),
                                        (f"/api/version?token={TOKEN}", {}, 200), (f"/?token={TOKEN}", {"Accept": "text/html"}, 303)):
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            answer.read()
            self.assertEqual(answer.status, status)
        self.assertIn("; Secure", answer.headers["Set-Cookie"])
        plain = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            plain.request("GET", "/healthz")
            plain.getresponse()
        plain.close()

    def test_what_is_refused(self):
        self.assertIn("both", self.refused(f"cert={self.cert}"))
        self.assertIn("both", self.refused(f"key={self.key}"))
        self.assertIn("nowhere.pem", self.refused(f"cert={self.folder}/nowhere.pem", f"key={self.key}"))
        self.assertIn("PEM", self.refused(f"cert={self.key}", f"key={self.key}"))
        os.chmod(self.key, 0o644)
        self.addCleanup(os.chmod, self.key, 0o600)
        self.assertIn("chmod 600", self.refused(f"cert={self.cert}", f"key={self.key}"))


if __name__ == "__main__":
    unittest.main()
