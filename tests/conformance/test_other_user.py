"""Another user of the same machine cannot use stolen data, and cannot block the server."""
import base64
import gzip
import hashlib
import hmac
import http.client
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import other_user
from harness import END, PATIENCE_S, TOKEN, T, Case, Server, Writer, until

VIEW, WRITE = (hmac.new(TOKEN.encode(), f"sonde {role} token".encode(), hashlib.sha256).hexdigest() for role in ("view", "write"))

# Requests that change something, with valid bodies.
CHANGES = (("/api/put", {"metric": "m", "timestamp": T, "value": 1, "tags": {"host": "a"}}), ("/api/metrics", {}),
           ("/api/annotation", {"startTime": T, "description": "x"}), ("/api/annotation/bulk", [{"startTime": T, "description": "x"}]),
           ("/sonde/v1/dump", {"to": "never"}), ("/sonde/v1/reboot", {}), ("/api/reboot", "hostnames=a"),
           ("/sonde/v1/collectors", {"name": "a", "command": "touch /tmp/never"}))
CONTROL = ("/sonde/v1/dump", "/sonde/v1/reboot", "/api/reboot", "/sonde/v1/collectors")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    return True


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


class Served(Case):
    """The server of a running job, with all routes, but without an agent that takes points."""

    @classmethod
    def setUpClass(cls):
        cls.arguments = ("agent=/nowhere/agent.sock",)
        super().setUpClass()

    @classmethod
    def write(cls, folder):
        writer = Writer(f"{folder}/node1.sonde")
        writer.points("cpu", {"host": "a"}, [(T, 1)])
        writer.close()

    def ask(self, method, target, body=None, **headers):
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        return self.server.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()}, token=False)

    def browser(self, token=TOKEN):
        """Opens the address as a browser does; returns the cookie."""
        answer = self.ask("GET", f"/?token={token}", Accept="text/html,*/*;q=0.8")
        self.assertEqual(answer.status, 303)
        return answer.headers["Set-Cookie"].split(";")[0]


class Roles(Served):
    def test_each_route_and_role(self):
        reads = ("/", "/metrics", "/sonde/v1/status", "/sonde/v1/openapi.json", "/api/version", "/api/suggest?type=metrics", f"/api/query?start={T}&end={END}&m=sum:cpu")
        for token in (VIEW, WRITE, TOKEN):
            for target in reads:
                self.assertEqual(self.ask("GET", target, **bearer(token)).status, 200, (token, target))
            query = {"start": T, "end": END, "queries": [{"aggregator": "sum", "metric": "cpu"}]}
            self.assertEqual(self.ask("POST", "/api/query", query, **bearer(token)).status, 200)
        for target, body in CHANGES:
            self.assertEqual(self.ask("POST", target, body, **bearer(VIEW)).status, 403, target)
            allowed = self.ask("POST", target, body, **bearer(WRITE)).status
            self.assertEqual(allowed == 403, target in CONTROL, target)
            self.assertNotIn(self.ask("POST", target, body, **bearer(TOKEN)).status, (401, 403), target)

    def test_the_docs_name_them(self):
        """docs/http.md lists each route with the role that it needs."""
        with open(os.path.join(os.path.dirname(__file__), "../../docs/http.md")) as f:
            rows = re.findall(r"^\| `(/[^`]*)` \| ([^|]*) \| ([^|]*) \| .*\|$", f.read(), re.M)
        self.assertGreater(len(rows), 30)
        for path, methods, words in rows:
            for method in methods.split(", "):
                role = words if " to " not in words else "view" if method == "GET" else "write"
                least = ["none", "view", "write", "control"].index(role.split(",")[0])
                body = None if method == "GET" else b"{"
                for token, has in ((None, 0), (VIEW, 1), (WRITE, 2), (TOKEN, 3)):
                    if path == "/sonde/v1/stream" and has >= least:
                        continue  # the answer would never end
                    status = self.ask(method, path, body, **(bearer(token) if token else {})).status
                    self.assertEqual(status in (401, 403), has < least, (path, method, token, status))

    def test_annotations_are_read_with_the_view_token(self):
        self.assertNotIn(self.ask("GET", f"/api/annotation?start_time={T}", **bearer(VIEW)).status, (401, 403))
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(self.ask(method, "/api/annotation", {"startTime": T}, **bearer(VIEW)).status, 403)

    def test_control_is_by_header_only(self):
        for target in CONTROL:
            self.assertEqual(self.ask("POST", f"{target}?token={TOKEN}", {}).status, 403, target)
            basic = "Basic " + base64.b64encode(f"admin:{TOKEN}".encode()).decode()
            self.assertEqual(self.ask("POST", target, {}, Authorization=basic).status, 403, target)

    def test_basic_authentication(self):
        for user in ("", "anybody", "a b"):
            value = base64.b64encode(f"{user}:{VIEW}".encode()).decode()
            self.assertEqual(self.ask("GET", "/api/version", Authorization=f"Basic {value}").status, 200)
        for wrong in ("", "x", "####", base64.b64encode(VIEW.encode()).decode(), base64.b64encode(b"a:b").decode(), base64.b64encode(b"\0" * 3000).decode()):
            self.assertEqual(self.ask("GET", "/api/version", Authorization=f"Basic {wrong}").status, 401)


class OpenView(Case):
    """With --view-without-token, programs of the server's own user may read, and do nothing
    else."""
    READS = ("/", "/metrics", "/sonde/v1/status", "/api/suggest?type=metrics&q=c", f"/api/query?start={T}&end={END}&m=sum:cpu", "/api/aggregators", "/api/search/lookup?m=cpu")
    arguments = ("agent=/nowhere/agent.sock", "open_view=1")
    write = classmethod(lambda cls, folder: Served.write(folder))
    ask = Served.ask

    def test_own_programs_read(self):
        for target in self.READS:
            self.assertEqual(self.ask("GET", target).status, 200, target)
            # Grafana's proxy sends this header.
            self.assertEqual(self.ask("GET", target, X_Forwarded_For="192.0.2.1").status, 200)
        query = {"start": T, "end": END, "queries": [{"aggregator": "sum", "metric": "cpu"}]}
        self.assertEqual(len(self.ask("POST", "/api/query", query).json), 1)

    def test_and_do_nothing_else(self):
        for target, body in CHANGES:
            self.assertEqual(self.ask("POST", target, body).status, 403, target)

    def test_tokens_mean_what_they_mean(self):
        self.assertEqual(self.ask("GET", "/api/version", **bearer("x" * 64)).status, 401)
        self.assertEqual(self.ask("GET", "/api/version?token=x").status, 401)
        self.assertNotIn(self.ask("POST", "/sonde/v1/reboot", {}, **bearer(TOKEN)).status, (401, 403))

    def test_pages_of_other_sites_do_not(self):
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:1"}, {"Host": "attacker.example"}):
            self.assertEqual(self.server.request("GET", "/api/version", headers=headers, token=False).status, 403, headers)
        self.assertEqual(self.ask("GET", "/api/version?jsonp=f").status, 403)

    @unittest.skipUnless(other_user.may_become_other(), "needs root")
    def test_other_users_do_not(self):
        answers = other_user.requests(self.server.port, [("GET", target, None, {}) for target in self.READS])
        self.assertEqual([status for status, _ in answers], [401] * len(self.READS))

    def test_without_the_option_nobody_does(self):
        with tempfile.TemporaryDirectory() as folder:
            Served.write(folder)
            server = Server(folder)
            self.addCleanup(server.stop)
            for target in self.READS:
                self.assertEqual(server.request("GET", target, token=False).status, 401)


class Cookies(Served):
    def test_it_is_a_random_session(self):
        first, second = self.browser(), self.browser()
        self.assertNotEqual(first, second)
        for cookie in (first, second):
            for token in (TOKEN, VIEW, WRITE):
                self.assertNotIn(token, cookie)
            self.assertEqual(self.ask("GET", "/api/version", Cookie=cookie).status, 200)

    def test_it_can_only_view(self):
        for token in (TOKEN, WRITE, VIEW):
            cookie = self.browser(token)
            for target, body in CHANGES:
                for headers in ({}, {"Origin": f"http://127.0.0.1:{self.server.port}", "Sec_Fetch_Site": "same-origin"}):
                    self.assertEqual(self.ask("POST", target, body, Cookie=cookie, **headers).status, 403, target)
        for name in ("Authorization", "token"):
            value = cookie.split("=")[1]
            answer = self.ask("GET", "/api/version", Authorization=f"Bearer {value}") if name == "Authorization" else self.ask("GET", f"/api/version?token={value}")
            self.assertEqual(answer.status, 401)

    def test_foreign_pages(self):
        cookie = self.browser()
        own = f"http://127.0.0.1:{self.server.port}"
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "null"},
                        {"Origin": own.replace("http", "https")}, {"Origin": own + "0"}, {"Origin": own, "Sec_Fetch_Site": "same-site"}):
            self.assertEqual(self.ask("GET", "/api/version", Cookie=cookie, **headers).status, 403, headers)
        for headers in ({"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}, {"Origin": own}, {}):
            self.assertEqual(self.ask("GET", "/api/version", Cookie=cookie, **headers).status, 200, headers)
        query = {"start": T, "end": END, "queries": [{"aggregator": "sum", "metric": "cpu"}]}
        # A browser sends the origin of a POST.
        self.assertEqual(self.ask("POST", "/api/query", query, Cookie=cookie).status, 403)
        self.assertEqual(self.ask("POST", "/api/query", query, Cookie=cookie, Origin=own).status, 200)

    def test_no_jsonp(self):
        target = f"/api/query?start={T}&end={END}&m=sum:cpu&jsonp=f"
        for name in ("jsonp", "%6asonp"):
            self.assertEqual(self.ask("GET", target.replace("jsonp", name), Cookie=self.browser()).status, 403)
        self.assertEqual(self.ask("GET", target, **bearer(VIEW)).status, 200)

    def test_programs_make_no_sessions(self):
        cookie = self.browser()
        for _ in range(200):
            self.assertIsNone(self.ask("GET", f"/api/version?token={VIEW}").headers["Set-Cookie"])
        self.assertEqual(self.ask("GET", "/api/version", Cookie=cookie).status, 200)

    def test_pages_cannot_be_framed(self):
        for target in ("/", "/api/version", "/nothing"):
            headers = self.ask("GET", target, **bearer(VIEW)).headers
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertEqual((headers["X-Frame-Options"], headers["X-Content-Type-Options"], headers["Referrer-Policy"], headers["Cross-Origin-Resource-Policy"]),
                             ("DENY", "nosniff", "no-referrer", "same-origin"))

    def test_the_token_goes_out_of_the_address(self):
        for target, location in ((f"/a?%74oken={TOKEN}", "/a"), (f"/a?x=1&%74%6f%6b%65%6e=old&t%6Fken={TOKEN}&y=%20", "/a?x=1&y=%20")):
            answer = self.ask("GET", target, Accept="text/html")
            self.assertEqual((answer.status, answer.headers["Location"]), (303, location))


@unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
class Keys(Served):
    """The page's own requests: the cookie, and the key that the page got for a token."""
    PAGE = {"Sec_Fetch_Site": "same-origin"}

    def key(self, cookie, token):
        answer = self.ask("POST", "/sonde/v1/session", Cookie=cookie, **self.PAGE, **bearer(token))
        self.assertEqual(answer.status, 200)
        return answer.json["key"]

    def changed(self, cookie, key, target="/api/annotation", body=None, **headers):
        body = {"startTime": T, "description": "x"} if body is None else body
        return self.ask("POST", target, body, Cookie=cookie, X_Sonde_Session_Key=key, **{**self.PAGE, **headers}).status

    def test_a_page_does_only_what_it_has_actions_for(self):
        cookie = self.browser(VIEW)
        notes = ("/api/annotation", "/api/annotation/bulk")
        for token, allowed in ((WRITE, notes), (TOKEN, (*notes, "/sonde/v1/reboot"))):
            key = self.key(cookie, token)
            for target, body in CHANGES:
                self.assertEqual(self.changed(cookie, key, target, body) != 403, target in allowed, (target, token))

    def test_neither_cookie_nor_key_alone(self):
        cookie, other = self.browser(VIEW), self.browser(VIEW)
        key = self.key(cookie, WRITE)
        self.assertEqual(self.ask("POST", "/api/annotation", {"startTime": T}, X_Sonde_Session_Key=key, **self.PAGE).status, 401)
        for wrong in ("x", key[:-1], key[:-1] + ("0" if key[-1] != "0" else "1"), key + "0", cookie.split("=")[1], "0" * 64, "\0" * 64):
            self.assertEqual(self.changed(cookie, wrong), 403, wrong)
        self.assertEqual(self.changed(cookie, ""), 403)
        self.assertEqual(self.changed(other, key), 403)
        # The same without a role: a session without a key has no key of zeros.
        self.assertEqual(self.changed(other, "0" * 64), 403)
        # A page of another server, with all of them. Older browsers name the page in Origin alone.
        for headers in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Origin": "http://127.0.0.1:1", "Sec_Fetch_Site": ""}):
            self.assertEqual(self.changed(cookie, key, **headers), 403, headers)
        # Our own page, also behind a proxy with another address.
        for headers in ({}, {"Origin": "https://portal.example"}):
            self.assertNotIn(self.changed(cookie, key, **headers), (401, 403), headers)
        # A page that asks again gets another key.
        again = self.key(cookie, WRITE)
        self.assertEqual(self.changed(cookie, key), 403)
        self.assertNotIn(self.changed(cookie, again), (401, 403))

    def test_a_key_needs_a_token_and_a_session(self):
        cookie = self.browser(TOKEN)
        self.assertEqual(self.ask("POST", "/sonde/v1/session", Cookie=cookie, **self.PAGE).status, 403)
        self.assertEqual(self.ask("POST", "/sonde/v1/session", Cookie=cookie, **self.PAGE, **bearer(VIEW)).status, 403)
        for headers in ({"Cookie": cookie}, self.PAGE, {"Cookie": cookie, "Sec_Fetch_Site": "cross-site"}, {"Cookie": cookie, "Origin": "http://127.0.0.1:1"}):
            self.assertEqual(self.ask("POST", "/sonde/v1/session", **bearer(TOKEN), **headers).status, 400, headers)

    def test_what_a_client_may_do(self):
        cookie = self.browser(VIEW)
        key = self.key(cookie, WRITE)
        for headers, role in ((bearer(VIEW), "view"), (bearer(TOKEN), "control"), ({"Cookie": cookie}, "view"), ({"Cookie": cookie, "X_Sonde_Session_Key": key}, "write")):
            self.assertEqual(self.ask("GET", "/sonde/v1/session", **headers).json, {"role": role, "annotations": True, "restarts": False})

    @unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
    def test_stolen_ones(self):
        cookie = self.browser(VIEW)
        key = self.key(cookie, TOKEN)
        asked = [("POST", target, json.dumps(body), {"Cookie": cookie, "X-Sonde-Session-Key": key, "Sec-Fetch-Site": "same-origin"}) for target, body in CHANGES]
        self.assertEqual([status for status, _ in other_user.requests(self.server.port, asked)], [401] * len(asked))


class Stolen(Served):
    def test_a_cookie(self):
        """A stolen cookie is useless. Another user can get it, because the browser also sends it to
        other ports of this host, where the user may have a server."""
        cookie = self.browser()
        name, value = cookie.split("=", 1)
        asked = [("POST", target, json.dumps(body), headers) for target, body in (*CHANGES, ("/api/version", None))
                 for headers in ({"Cookie": cookie}, bearer(value), {"Cookie": cookie, **bearer(value)}, {"Cookie": f"{name.replace('session', 'token')}={value}"})]
        asked.append(("GET", "/api/version", None, {"Cookie": cookie}))
        for question, (status, _) in zip(asked, other_user.requests(self.server.port, asked)):
            self.assertEqual(status, 401, question)
        self.assertEqual(self.ask("GET", "/api/version", Cookie=cookie).status, 200)

    def test_the_control_token(self):
        answers = other_user.requests(self.server.port, [("POST", target, json.dumps(body), bearer(TOKEN)) for target, body in CHANGES])
        for (target, _), (status, text) in zip(CHANGES, answers):
            self.assertEqual(status == 403, target in CONTROL, (target, text))
        self.assertEqual(self.ask("POST", "/sonde/v1/collectors", {"name": "a", "command": "true"}, **bearer(TOKEN)).status, 200)

    def test_proxies(self):
        for header in ("Forwarded", "X-Forwarded-For", "Via"):
            answer = self.ask("POST", "/sonde/v1/collectors", {"name": "a", "command": "true"}, **bearer(TOKEN), **{header.replace("-", "_"): "1.1 x"})
            self.assertEqual(answer.status, 403)


# Forwards connections, as sshd does for `ssh -L`: as the same user. With the argument "hidden",
# other processes may not inspect it.
FORWARD = """
if sys.argv[2] == "hidden" and ctypes.CDLL(None).prctl(4, 0, 0, 0, 0):  # PR_SET_DUMPABLE
    sys.exit("prctl")
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    client, _ = listening.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    def hand_on(a, b):
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    threading.Thread(target=hand_on, args=(client, server), daemon=True).start()
    threading.Thread(target=hand_on, args=(server, client), daemon=True).start()
"""


@unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
class Tunnels(unittest.TestCase):
    """The server runs as a user other than root, because root may inspect every process."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sonde-tunnel-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chown(self.folder, other_user.OTHER_UID, other_user.OTHER_UID)
        self.server = Server("agent=/nowhere/agent.sock", self.folder, user=other_user.OTHER_UID)
        self.addCleanup(self.server.stop)

    def forwarder(self, program, how):
        process = other_user.start(FORWARD, str(self.server.port), how, program=program)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.terminate)
        return int(process.stdout.readline())

    def collect(self, port):
        return other_user.request(port, "POST", "/sonde/v1/collectors", json.dumps({"name": "a", "command": "true"}), bearer(TOKEN))

    def test_they_are_not_local(self):
        self.assertEqual(self.collect(self.server.port), 200)
        hidden = self.forwarder(sys.executable, "hidden")
        self.assertEqual(self.collect(hidden), 403)
        self.assertEqual(other_user.request(hidden, "GET", "/api/version", None, bearer(TOKEN)), 200)
        named = f"{self.folder}/ssh"
        shutil.copy(os.path.realpath(sys.executable), named)
        os.chmod(named, 0o755)
        self.assertEqual(self.collect(self.forwarder(named, "visible")), 403)


@unittest.skipUnless(os.path.exists("/usr/sbin/sshd") and shutil.which("ssh"), "sshd or ssh is not installed")
@unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
class Ssh(Tunnels):
    """Real tunnels: the end of ssh -L is an sshd of the user, that of ssh -R is the user's ssh."""

    def test_they_are_not_local(self):
        name = pwd.getpwuid(other_user.OTHER_UID).pw_name
        host_key, key, keys, config = (f"{self.folder}/{n}" for n in ("host", "key", "keys", "config"))
        for path in (host_key, key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        shutil.copy(f"{key}.pub", keys)
        os.chown(key, other_user.OTHER_UID, -1)
        ports = [free_port() for _ in range(3)]
        with open(config, "w") as f:
            f.write(f"ListenAddress 127.0.0.1\nPort {ports[0]}\nHostKey {host_key}\nAuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\nPidFile none\n")
        os.makedirs("/run/sshd", exist_ok=True)  # sshd's folder for privilege separation
        sshd = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", config], stderr=subprocess.DEVNULL)
        self.addCleanup(sshd.wait, 60)
        self.addCleanup(sshd.terminate)
        until(lambda: answers(ports[0]), "sshd answers")
        ssh = subprocess.Popen(["ssh", "-N", "-F", "none", "-i", key, "-p", str(ports[0]), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                                "-o", "ExitOnForwardFailure=yes", "-L", f"{ports[1]}:127.0.0.1:{self.server.port}", "-R", f"127.0.0.1:{ports[2]}:127.0.0.1:{self.server.port}",
                                f"{name}@127.0.0.1"], user=other_user.OTHER_UID, group=other_user.OTHER_UID, extra_groups=[], cwd="/")
        self.addCleanup(ssh.wait, 60)
        self.addCleanup(ssh.terminate)
        for port in ports[1:]:
            until(lambda p=port: answers(p), "the tunnel is open")
            self.assertEqual(other_user.request(port, "GET", "/api/version", None, bearer(TOKEN)), 200)
            self.assertEqual(self.collect(port), 403)


class Open(Served):
    """Routes that need no token take next to no memory."""

    def test_large_and_compressed_bodies(self):
        for path in ("/api/token", "/healthz"):
            large = self.ask("POST", path, b"x" * 1025)
            self.assertEqual(large.status, 413 if path == "/api/token" else 405)
        key = json.dumps({"auth_key": TOKEN}).encode()
        self.assertEqual(self.ask("POST", "/api/token", key + b" " * (1024 - len(key))).status, 200)
        self.assertEqual(self.ask("POST", "/api/token", gzip.compress(key), Content_Encoding="gzip").status, 415)
        bomb = gzip.compress(b"[" * 4_000_000)
        self.assertEqual(self.ask("POST", "/api/token", bomb[:1024], Content_Encoding="gzip").status, 415)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/token", iter([b" " * 1000, b" " * 25]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        self.assertEqual(connection.getresponse().status, 413)

    def test_each_key_gives_its_own_token(self):
        for token in (TOKEN, WRITE, VIEW):
            self.assertEqual(self.ask("POST", "/api/token", {"auth_key": token}).json, {"access_token": f"Bearer {token}"})
        self.assertEqual(self.ask("POST", "/api/token", {"auth_key": "x"}).status, 400)


@unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
class Flood(Served):
    """The limit on connections without a token affects only the user who opens too many."""
    arguments = ("agent=/nowhere/agent.sock",)

    def test_half_requests(self):
        before, began = 0, time.monotonic()
        for data in ("POST /api/query HT", "GET / HTTP/1.1\r\nX: ", "POST /api/token HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", "", "put"):
            with self.subTest(data), other_user.Holding(self.server.port, 300, data):
                kept = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
                for _ in range(20):
                    self.assertEqual(self.server.get("/api/version").status, 200)
                    kept.request("GET", "/api/version", headers=bearer(TOKEN))
                    self.assertEqual(kept.getresponse().read()[:1], b"{")
                kept.close()
                counts = self.server.get("/sonde/v1/status").json["connections"]
                self.assertLessEqual(counts["unproved"], 16)
                # Two limits allow 32 connections and then 20 a second: the limit for all clients,
                # and that for the other user.
                most = 2 * (32 + 20 * (time.monotonic() - began + 1))
                self.assertGreaterEqual(counts["refused"] - before, 300 - most)
                self.assertGreater(counts["refused"], 0)
                before, began = counts["refused"], time.monotonic()

    def test_many_of_our_own(self):
        """Our own 100 connections are all served, even if all are open before the first request."""
        connections = [http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S) for _ in range(100)]
        with other_user.Holding(self.server.port, 100, "GET / HT"):
            for connection in connections:
                connection.connect()
            for connection in connections:
                connection.request("GET", "/api/version", headers=bearer(VIEW))
            for connection in connections:
                self.assertEqual(connection.getresponse().status, 200)
                connection.close()


@unittest.skipUnless(other_user.may_become_other(), "not root: cannot become another user")
class TokenFiles(Served):
    def refused(self, path):
        server = Server(f"token_file={path}", self.folder, token=None)
        self.assertEqual(server.stop(), 1)
        return server.line

    def test_whose_they_are(self):
        path = f"{self.folder}/token"
        with open(path, "w") as f:
            f.write("a" * 64 + "\n")
        for mode in (0o644, 0o640, 0o604, 0o620, 0o602):
            os.chmod(path, mode)
            self.assertIn("chmod 600", self.refused(path))
        os.chmod(path, 0o600)
        os.symlink(path, path + "-link")
        self.assertIn("link", self.refused(path + "-link"))
        os.chown(path, other_user.OTHER_UID, -1)
        self.assertIn("belongs to another user", self.refused(path))
        os.chown(path, 0, -1)
        server = Server(f"token_file={path}", self.folder, token=None)
        self.assertEqual(server.request("GET", "/api/version", headers=bearer("a" * 64)).status, 200)
        self.assertEqual(server.stop(), 0)
        with open(path, "w") as f:
            f.write("short\n")
        self.assertIn("at least 32", self.refused(path))
        os.mkfifo(path + "-pipe", 0o600)
        self.assertIn("regular file", self.refused(path + "-pipe"))


if __name__ == "__main__":
    unittest.main()
