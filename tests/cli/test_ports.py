"""A job's ports: no other program gets them, and a server there that does not know the job's token
does not receive it."""

import pathlib
import signal
import socket
import threading
import urllib.request

from place import Place, continue_process, has_ended, main, signal_process, stop_process, until


class Impostor:
    """Accepts connections and records all requests. `answer(request bytes)` makes the response; the
    default is an OK to everything."""

    def __init__(self, port=0, answer=None):
        self.said = b""
        self.answer = answer or (lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}")
        self.socket = socket.create_server(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=[connection], daemon=True).start()

    def talk(self, connection):
        with connection:
            try:
                while piece := connection.recv(65536):
                    self.said += piece
                    if b"\r\n\r\n" in piece:
                        connection.sendall(self.answer(piece))
            except OSError:  # the client hung up
                pass

    def close(self):
        self.socket.close()


class Tokens(Place):
    token = "0123456789abcdef" * 4

    def ask(self, port, host="127.0.0.1"):
        """Sends a request there, as a client that has the job's token from the environment."""
        path = self.root / "token"
        path.write_text(self.token + "\n")
        path.chmod(0o600)
        return self.sonde("dump", env={"SONDE_URL": f"http://{host}:{port}", "SONDE_TOKEN_FILE": str(path)})

    def test_not_for_a_stranger(self):
        for answer in (None, lambda request: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", lambda request: b"HTTP/1.1 200 OK\r\n\r\n",
                       lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + 9999 * b"x", lambda request: b"\0" * 100000,
                       lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 81\r\n\r\n127.0.0.1:4242\n" + b"0" * 64 + b"\n\n"):
            impostor = Impostor(answer=answer)
            result = self.ask(impostor.port)
            impostor.close()
            self.assertIn(b"GET /", impostor.said)
            self.assertNotIn(self.token.encode(), impostor.said)
            self.one_line(result, 1, f"127.0.0.1:{impostor.port}")

    def test_not_through_a_stranger(self):
        """A server that forwards the request to the real one, which knows the token, gets a proof
        with the wrong address."""
        self.start("run", "--", "sleep", "1000")
        job = self.job()
        self.token = pathlib.Path(job["token_file"]).read_text().strip()
        real = int(job["url"].rsplit(":", 1)[1])

        def pass_on(request):
            with socket.create_connection(("127.0.0.1", real)) as s:
                s.sendall(request)
                return s.recv(65536)

        impostor = Impostor(answer=pass_on)
        self.one_line(self.ask(impostor.port), 1, "answers for another one", f"127.0.0.1:{real}")
        self.assertIn(b"/sonde/v1/proof", impostor.said)
        self.assertNotIn(self.token.encode(), impostor.said)
        impostor.close()
        self.assertEqual(self.ask(real).returncode, 0)  # and the real server receives it

    def test_the_proof_needs_no_token_and_gives_none(self):
        self.start("run", "--", "sleep", "1000")
        job = self.job()
        with urllib.request.urlopen(job["url"] + "/sonde/v1/proof?nonce=" + "0" * 32) as answer:
            text = answer.read().decode()
        self.assertRegex(text, r"^127\.0\.0\.1:\d+\n([0-9a-f]{64}\n)+$")
        self.assertNotIn(pathlib.Path(job["token_file"]).read_text().strip(), text)
        for nonce in ("", "x" * 32, "0" * 31, "0" * 33):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(job["url"] + "/sonde/v1/proof?nonce=" + nonce)
            self.assertEqual(refused.exception.code, 400)
            refused.exception.close()


class Held(Place):
    """The launcher holds the ports: no other program can take them, even if the aggregator dies
    repeatedly."""

    def taken(self, port):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                s.listen()
            except OSError:
                return True
        return False

    def test_ports(self):
        process = self.start("run", "--open-hub", "--", "sh", "-c", "echo $SONDE_HUB; exec sleep 1000")
        hub = int(process.stdout.readline())
        port = int(self.job()["url"].rsplit(":", 1)[1])
        seen = set()
        for turn in range(6):
            victim = until(lambda: next((p for p in self.alive("aggregator --listen") if p not in seen), None), "an aggregator")
            seen.add(victim)
            # so that the launcher cannot start the next one during the check
            stop_process(victim)
            self.assertTrue(self.taken(port) and self.taken(hub))
            signal_process(victim, signal.SIGKILL)
            until(lambda: has_ended(victim), "it is dead")
            self.assertTrue(self.taken(port) and self.taken(hub), turn)
        until(lambda: "not started again" in process.stderr.readline(), "the launcher gives up")
        self.assertFalse(self.alive("aggregator --listen"))
        self.assertTrue(self.taken(port) and self.taken(hub))
        with socket.socket() as s:  # no client waits at that port
            self.assertNotEqual(s.connect_ex(("127.0.0.1", port)), 0)
        process.terminate()
        self.ends(process)
        self.assertFalse(self.taken(port) or self.taken(hub))

    def test_who_waits_is_answered_by_the_next(self):
        process = self.start("run", "--", "sleep", "1000")
        job = self.job()
        launcher, first = process.pid, next(iter(self.alive("aggregator --listen")))
        stop_process(launcher)
        signal_process(first, signal.SIGKILL)
        until(lambda: has_ended(first), "it is dead")
        with socket.create_connection(("127.0.0.1", int(job["url"].rsplit(":", 1)[1]))) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            continue_process(launcher)
            self.assertIn(b"200 OK", s.recv(4096))


if __name__ == "__main__":
    main()
