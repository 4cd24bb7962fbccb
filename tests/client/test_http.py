"""Tests src/client/http.h with servers of every kind: how it finds a job, the requests that it
sends, and failures."""

import contextlib
import errno
import http.server
import json
import os
import socketserver
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.environ["PLACE"])
from place import PATIENCE_S, Place, main, server_proof  # noqa: E402

ASK = os.environ["ASK"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        where = self.path
        self.server.connections.add(self.client_address)
        self.server.asked.append((self.client_address, where, self.headers.get("Authorization")))
        if where.startswith("/sonde/v1/proof?nonce="):
            self.say(200, server_proof(where, self.server.claims or "{}:{}".format(*self.connection.getsockname()), self.server.tokens))
        elif where == "/echo":
            size = int(self.headers.get("Content-Length", 0))
            seen = {"method": self.command, "body": self.rfile.read(size).decode(), "type": self.headers.get("Content-Type"),
                    "authorization": self.headers.get("Authorization")}
            self.say(200, json.dumps(seen).encode(), [("Content-Type", "application/json"), ("X-Sonde-Missing", "n2 (late)")])
        elif where.startswith("/status/"):
            self.say(int(where[8:]), b'{"error":{"code":%s,"message":"in words"}}' % where[8:].encode())
        elif where == "/page":
            self.say(500, b"<html>oh</html>")
        elif where == "/plain":
            self.say(418, b"a teapot\nmore")
        elif where == "/moved":
            self.say(302, b"", [("Location", "/echo")])
        elif where == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
        elif where == "/never":
            self.server.over.wait()
        elif where == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            # A client that has read enough closes the connection.
            with contextlib.suppress(OSError):
                for i in range(int(self.server.pieces)):
                    self.wfile.write(b"7\r\nline %d\n\r\n" % (i % 10))
                    self.wfile.flush()
                    if self.server.paced:
                        self.server.over.wait(0.05)
                self.wfile.write(b"0\r\n\r\n")

    do_POST = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections, self.over, self.pieces, self.paced = set(), threading.Event(), 5, False
        self.asked, self.tokens, self.claims = [], ["another", "secret", "abc", "wins", "from-file-" + "x" * 32], None

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """A server on a Unix socket, like a node's relay."""

    daemon_threads = True

    def __init__(self, path):
        super().__init__(str(path), Handler)
        self.connections, self.over, self.pieces, self.paced = set(), threading.Event(), 5, False
        self.asked, self.tokens, self.claims = [], [], None

    __enter__, __exit__ = Server.__enter__, Server.__exit__


class Http(Place):
    def ask(self, url, what="get", path="/echo", *body, token="-", env=None):
        result = subprocess.run([ASK, url, token, what, path, *body], env=self.env | (env or {}), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        for answer in answers:
            answer["rc"] = errno.errorcode.get(answer["errno"], "")
        return answers[0] if len(answers) == 1 else answers

    def fails(self, answer, code, *words):
        self.assertEqual(answer["rc"], code, answer)
        for word in words:
            self.assertIn(word, answer["words"])
        self.assertEqual(answer["body"], "")


class Asking(Http):
    def test_get_and_post(self):
        with Server() as s:
            answer = self.ask(s.url)
            self.assertEqual((answer["rc"], answer["status"], answer["type"], answer["missing"], answer["url"]), ("", 200, "application/json", "n2 (late)", s.url))
            self.assertEqual(json.loads(answer["body"]), {"method": "GET", "body": "", "type": None, "authorization": None})
            answer = self.ask(s.url + "/", "post", "/echo", "x" * 100_000, token="secret")
            self.assertEqual(json.loads(answer["body"]), {"method": "POST", "body": "x" * 100_000, "type": "text/plain", "authorization": "Bearer secret"})
            self.assertEqual(json.loads(self.ask(s.url, "post", "/echo", "")["body"])["method"], "POST")

    def test_answers_that_are_errors(self):
        with Server() as s:
            for status, code in ((400, "EINVAL"), (401, "EACCES"), (403, "EACCES"), (404, "ENOENT"), (408, "ETIME"), (413, "EFBIG"), (500, "EPROTO"), (503, "EBUSY")):
                answer = self.ask(s.url, "get", f"/status/{status}")
                self.fails(answer, code, "in words")
                self.assertEqual(answer["status"], status)
            self.assertIn("token", self.ask(s.url, "get", "/status/401")["words"])
            self.fails(self.ask(s.url, "get", "/page"), "EPROTO", s.url, "500")
            self.assertEqual(self.ask(s.url, "get", "/plain")["words"], "a teapot")
            self.fails(self.ask(s.url, "get", "/moved"), "EPROTO", "302")

    def test_connections_that_fail(self):
        with Server() as s:
            self.fails(self.ask(s.url, "get", "/cut"), "ECONNRESET", s.url, "in the middle")
            self.fails(self.ask(s.url, "get", "/never", env={"ASK_TIMEOUT_MS": "200"}), "ETIMEDOUT", s.url)
            self.fails(self.ask(s.url, "cancel", "/never"), "ECANCELED")
            url = s.url
        self.fails(self.ask(url), "ECONNREFUSED", url)
        self.fails(self.ask("http://no-such-host.invalid"), "EHOSTUNREACH", "no-such-host")

    def test_a_stream(self):
        with Server() as s:
            answer = self.ask(s.url, "follow", "/stream")
            self.assertEqual((answer["rc"], answer["body"]), ("ECONNRESET", "".join(f"line {i}\n" for i in range(5))))
            self.assertIn("has ended the stream", answer["words"])
            s.pieces, s.paced = 1000, True
            answer = self.ask(s.url, "follow3", "/stream")
            self.assertEqual(answer["rc"], "")
            self.assertLess(len(answer["body"]), 7000)
            self.assertEqual(self.ask(s.url, "quiet", "/never")["rc"], "EAGAIN")
            self.fails(self.ask(s.url, "follow", "/status/401"), "EACCES", "in words")
            self.fails(self.ask(s.url, "follow", "/status/503"), "EBUSY", "in words")
            self.assertEqual(self.ask(s.url, "follow", "/cut")["rc"], "ECONNRESET")
            url = s.url
        self.fails(self.ask(url, "follow", "/stream"), "ECONNREFUSED", url)

    def test_a_child_has_a_connection_of_its_own(self):
        with Server() as s:
            answers = self.ask(s.url, "twice")
            self.assertEqual([a["rc"] for a in answers], ["", "", ""])
            self.assertEqual(len(s.connections), 2)

    def test_the_token_is_for_a_server_that_knows_it(self):
        with Server() as s:
            self.ask(s.url, "twice", token="secret")
            # On each connection, the client requests a proof, and sends the token only after it.
            for connection in s.connections:
                said = [(where, token) for client, where, token in s.asked if client == connection]
                self.assertIn("/sonde/v1/proof", said[0][0])
                self.assertEqual({token for _, token in said[1:]}, {"Bearer secret"})
                self.assertIsNone(said[0][1])
            s.asked.clear()
            self.fails(self.ask(s.url, token="mistyped"), "EACCES", "does not know", "the token is wrong")
            self.assertEqual([token for _, _, token in s.asked], [None])

    def test_through_a_tunnel(self):
        """The address in the server's proof differs from the one to which the client has
        connected."""
        file = self.root / "token"
        file.write_text("from-file-" + "x" * 32 + "\n")
        file.chmod(0o600)
        with Server() as s:
            s.claims = "10.0.0.7:4242"
            self.assertEqual(self.ask(s.url, token="secret")["status"], 200)
            self.assertEqual(self.ask(f"{s.url}/?token=secret")["status"], 200)
            s.asked.clear()
            env = {"SONDE_URL": s.url, "SONDE_TOKEN_FILE": str(file)}
            for url in ("-", s.url):
                self.fails(self.ask(url, env=env), "EACCES", "10.0.0.7:4242", "tunnel")
            self.assertEqual({token for _, _, token in s.asked}, {None})

    def test_proxies_are_not_asked(self):
        with Server() as s:
            self.assertEqual(self.ask(s.url, env={"http_proxy": "http://127.0.0.1:1"})["status"], 200)


class Finding(Http):
    def test_by_address(self):
        with Server() as s:
            for url in (f"{s.url}/?token=abc", f"{s.url}?x=1&token=abc#y"):
                answer = self.ask(url)
                self.assertEqual((answer["url"], json.loads(answer["body"])["authorization"]), (s.url, "Bearer abc"))
            self.assertEqual(json.loads(self.ask(f"{s.url}/?token=abc", token="wins")["body"])["authorization"], "Bearer wins")
        for wrong in ("localhost:4242", "ftp://x", "http://", "http://?token=x"):
            self.fails(self.ask(wrong), "EINVAL", "http://HOST:PORT")

    def test_by_environment(self):
        file = self.root / "token"
        token = "from-file-" + "x" * 32
        file.write_text(token + "\n")
        file.chmod(0o600)
        with Server() as s, Server() as other:
            env = {"SONDE_URL": s.url, "SONDE_TOKEN_FILE": str(file)}
            self.assertEqual(json.loads(self.ask("-", env=env)["body"])["authorization"], f"Bearer {token}")
            self.assertEqual(json.loads(self.ask(s.url, env=env)["body"])["authorization"], f"Bearer {token}")
            # The client must not send this job's token to another server.
            self.assertIsNone(json.loads(self.ask(other.url, env=env)["body"])["authorization"])
            file.chmod(0o640)
            self.fails(self.ask("-", env=env), "EPERM", "chmod 600")
            file.unlink()
            self.fails(self.ask("-", env=env), "ENOENT", "token", str(file))
        env |= {"SONDE_TOKEN_FILE": "", "SONDE_NODELIST": "n[1-2]"}
        self.fails(self.ask("-", env=env), "ECONNREFUSED", "SONDE_RUN_DIR", "http.sock")

    def test_by_run_folder(self):
        self.fails(self.ask("-"), "ENOENT", "no job runs here")
        self.start("run", "--quiet", "-l", "1", "--", "sleep", "600", env={"SONDE_JOB": "mine"})
        url = self.job()["url"]
        for where in ("-", url, "job:mine"):
            answer = self.ask(where, "get", "/sonde/v1/status")
            self.assertEqual((answer["rc"], json.loads(answer["body"])["job"], answer["url"]), ("", "mine", url))
        self.fails(self.ask(url, "get", "/sonde/v1/status", token="wrong"), "EACCES", "token")
        for env in ({"SONDE_JOB": "another"}, {"SONDE_RUN_DIR": str(self.root)}):
            self.fails(self.ask("-", env=env), "ENOENT")
        self.fails(self.ask("job:another"), "ENOENT", "another")
        self.started[0].terminate()


class OtherNodes(Http):
    """The client is on another node than the job's first one, whose server listens on loopback."""

    def setUp(self):
        super().setUp()
        base = self.root / f"sonde-{os.geteuid()}"
        self.folder = base / "mine"
        self.folder.mkdir(parents=True)
        base.chmod(0o700)
        self.socket = self.folder / "http.sock"
        token = self.folder / "token"
        token.write_text("secret-" + "x" * 32 + "\n")
        token.chmod(0o600)
        self.around = {"SONDE_URL": "http://127.0.0.1:1", "SONDE_JOB": "mine", "SONDE_RUN_DIR": str(self.root), "SONDE_TOKEN_FILE": str(token),
                       "SONDE_NODELIST": "n[1-3]"}

    def test_through_the_run_folder_and_without_a_token(self):
        with UnixServer(self.socket) as s:
            for url in ("-", "http://127.0.0.1:1"):
                answer = self.ask(url, env=self.around)
                self.assertEqual((answer["rc"], answer["url"], json.loads(answer["body"])["authorization"]), ("", "http://127.0.0.1:1", None))
            answers = self.ask("-", "twice", env=self.around)
            self.assertEqual([a["rc"] for a in answers], ["", "", ""])
            # The client requests no proof, because the relay checks that of the server.
            self.assertEqual({(path, token) for _, path, token in s.asked}, {("/echo", None)})
            stream = self.ask("-", "follow", "/stream", env=self.around)
            self.assertEqual(stream["body"].count("line"), 5)
            self.fails(self.ask("-", "get", "/status/503", env=self.around), "EBUSY", "in words")

    def test_only_where_it_is_meant(self):
        with UnixServer(self.socket) as s, Server() as other:
            # The client does not use the relay for another address, with an explicit token, for a
            # server that does not listen on loopback, or with another job's folder.
            self.fails(self.ask("http://127.0.0.1:2", env=self.around), "ECONNREFUSED")
            self.fails(self.ask("http://127.0.0.1:1/?token=abc", env=self.around), "ECONNREFUSED")
            self.assertEqual(self.ask(other.url, env=self.around)["status"], 200)
            self.fails(self.ask("-", env=self.around | {"SONDE_URL": "http://sonde.invalid:1"}), "EHOSTUNREACH")
            self.fails(self.ask("-", env=self.around | {"SONDE_JOB": "another"}), "ECONNREFUSED", "SONDE_RUN_DIR", "http.sock")
            self.fails(self.ask("-", env=self.around | {"SONDE_JOB": "../sonde"}), "ECONNREFUSED")
            # A base folder that others may enter could contain another user's socket.
            self.folder.parent.chmod(0o755)
            self.fails(self.ask("-", env=self.around), "ECONNREFUSED")
            self.assertEqual(s.asked, [])

    def test_a_relay_that_is_gone(self):
        UnixServer(self.socket).server_close()
        self.fails(self.ask("-", env=self.around), "ECONNREFUSED", "relay of this node", str(self.socket))
        self.socket.unlink()
        self.fails(self.ask("-", env=self.around), "ECONNREFUSED", "http.sock")
        self.socket.write_text("no socket")
        self.fails(self.ask("-", env=self.around), "ECONNREFUSED", "http.sock")


class Https(Http):
    def test_certificates(self):
        certificate, key = self.root / "cert.pem", self.root / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=sonde",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with Server() as s:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            s.socket = context.wrap_socket(s.socket, server_side=True)
            url = s.url.replace("http", "https")
            self.fails(self.ask(url), "EKEYREJECTED", "SONDE_CA")
            for name in ("SONDE_CA", "CURL_CA_BUNDLE"):
                self.assertEqual(self.ask(url, env={name: str(certificate)})["status"], 200)
            answers = self.ask(url, "twice", env={"SONDE_CA": str(certificate)})
            self.assertEqual([a["rc"] for a in answers], ["", "", ""])
            self.fails(self.ask(url, env={"SONDE_CA": str(self.root / "none.pem")}), "EKEYREJECTED", "certificates")
            # The certificate does not contain this host name.
            self.fails(self.ask(url.replace("127.0.0.1", "localhost"), env={"SONDE_CA": str(certificate)}), "EKEYREJECTED")


main()
