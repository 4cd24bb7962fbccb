"""The tokens of a job: who gets which token, where tokens are stored, and where they must not
appear."""
import base64
import hashlib
import hmac
import json
import os
import pty
import re
import subprocess
import urllib.error
import urllib.request

from place import PATIENCE_S, SONDE, Place, main, until


def derived(control, role):
    return hmac.new(control.encode(), f"sonde {role} token".encode(), hashlib.sha256).hexdigest()


class Token(Place):
    def token(self, *arguments, **more):
        result = self.sonde("token", *arguments, **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout[:-1]

    def status(self, url, token, path="/api/version", body=None):
        request = urllib.request.Request(url + path, body, {"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def test_of_a_running_job(self):
        self.start("run", "-q", "-l", "1", "--", "sleep", "1000", env={"SONDE_JOB": "mine"})
        url = self.job()["url"]
        control = next(self.tmp.glob("sonde-*/mine/token")).read_text().strip()
        self.assertEqual([self.token(), self.token("--view"), self.token("--write", "mine"), self.token("--control")],
                         [derived(control, "view"), derived(control, "view"), derived(control, "write"), control])
        self.assertEqual(self.token("--header"), f"Authorization: Bearer {self.token()}")
        annotation = json.dumps({"startTime": 1, "description": "x"}).encode()
        for flag, put, reboot in (("--view", 403, 403), ("--write", 200, 403), ("--control", 200, 501)):
            token = self.token(flag)
            self.assertEqual([self.status(url, token), self.status(url, token, "/api/annotation", annotation), self.status(url, token, "/sonde/v1/reboot", b"")],
                             [200, put, reboot], flag)
        self.one_line(self.sonde("token", "another"), 1, "another")
        self.one_line(self.sonde("token", "--view", "--write"), 2, "one of")
        self.one_line(self.sonde("token", "mine", "--token-file", "x"), 2, "not both")

    def test_every_command_means_the_job_around_it(self):
        """Of two jobs, commands choose the one of SONDE_JOB, although it is older: with --url,
        without, and for a page."""
        for name in ("one", "two"):
            self.start("run", "-q", "-l", "1", "--", "sleep", "1000", env={"SONDE_JOB": name})
            until(lambda name=name: any(j["job"] == name and j["url"] for j in json.loads(self.sonde("status", "--json").stdout)), name)
        tokens = {name: next(self.tmp.glob(f"sonde-*/{name}/token")).read_text().strip() for name in ("one", "two")}
        for name, control in tokens.items():
            view, inside = derived(control, "view"), {"SONDE_JOB": name}
            self.assertEqual(self.token("--control", env=inside), control)
            self.assertIn(f":{view}@", self.token("--url", env=inside))
            self.assertIn(f"token={view}\n", self.sonde("open", "--no-browser", env=inside).stdout)
            self.assertEqual(self.sonde("put", f"of_{name}", "1", env=inside).returncode, 0)
            self.assertIn(f"of_{name}", self.sonde("query", "--list", name).stdout)
        self.assertNotIn("of_one", self.sonde("query", "--list", "two").stdout)

    def test_a_url_for_grafana(self):
        """Grafana's data source replaces the URL's parameters in some requests, and keeps user and
        password in all of them."""
        self.start("run", "-q", "--", "sleep", "1000", env={"SONDE_JOB": "mine"})
        where = self.job()["url"]
        for flags in ((), ("--view", "mine"), ("--write",)):
            url = self.token("--url", *flags)
            self.assertEqual(url, where.replace("://", f"://sonde:{self.token(*flags)}@"))
            credentials, server = url.removeprefix("http://").split("@")
            basic = {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}
            for path in ("/api/suggest?q=cpu&type=metrics", "/api/aggregators", "/api/config/filters", "/api/search/lookup?m=load_1m&limit=1000", "/api/query?start=1m-ago&m=sum:load_1m",
                         "/api/version", "/metrics", "/sonde/v1/status"):
                with urllib.request.urlopen(urllib.request.Request(f"http://{server}{path}", headers=basic)) as answer:
                    self.assertEqual(answer.status, 200, path)
        self.one_line(self.sonde("token", "--url", "--header"), 2, "--url", "--header")
        self.one_line(self.sonde("token", "--url", "--control"), 2, "a URL", "--write")
        self.one_line(self.sonde("token", "--url", "--token-file", self.root / "fixed"), 2, "--token-file", "no URL")
        # It also works inside the job, where the environment has the path of the token's file.
        inside = self.sonde("run", "-q", "--", "sh", "-c", "sonde token --url; echo $SONDE_URL").stdout.split()
        self.assertEqual(inside[0].split("@")[1], inside[1].removeprefix("http://"))

    def test_within_a_job(self):
        result = self.sonde("run", "-q", "-l", "1", "--", "sh", "-c", "sonde token --control; cat $SONDE_TOKEN_FILE")
        self.assertEqual(len(set(result.stdout.split())), 1)

    def test_a_fixed_one(self):
        """The token is made if it is missing; every job that is started with it has the same one,
        so that a Grafana data source stays valid."""
        file = self.root / "fixed"
        view = self.token("--token-file", file)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        control = file.read_text().strip()
        self.assertRegex(control, "^[0-9a-f]{64}$")
        self.assertEqual(view, derived(control, "view"))
        for _ in range(2):
            self.assertEqual(self.sonde("run", "-q", "-l", "1", "--token-file", file, "--", "sonde", "token").stdout.strip(), view)
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--", "sonde", "token", "--control").stdout.strip() == control, False)
        config = self.root / "sonde.yaml"
        config.write_text(f"token_file: {file}\n")
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--config", config, "--", "sonde", "token").stdout.strip(), view)
        other = self.root / "by-run"
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--token-file", other, "--", "sonde", "token", "--control").stdout, other.read_text())
        file.chmod(0o644)
        for command in (("run", "--strict", "--token-file", file, "--", "true"), ("token", "--token-file", file), ("replay", "--token-file", file)):
            self.one_line(self.sonde(*command), 1, "chmod 600")
        self.one_line(self.sonde("run", "--token-file", file, "--", "true"), 0, "chmod 600")
        self.nothing_left()

    def test_only_a_terminal_sees_it(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([SONDE, "run", "-l", "1", "--", "sonde", "token", "--control"], env=self.env, stdout=subprocess.PIPE, stderr=theirs, text=True)
        os.close(theirs)
        control = process.communicate(timeout=PATIENCE_S)[0].strip()
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # the end of a terminal is reported this way
        os.close(ours)
        self.assertEqual(re.search(rb"/\?token=([0-9a-f]+)", shown).group(1).decode(), derived(control, "view"))
        self.assertNotIn(control.encode(), shown)
        result = self.sonde("run", "-v", "-l", "1", "--", "sonde", "token", "--control")
        for role in ("view", "write"):
            self.assertNotIn(derived(result.stdout.strip(), role), result.stderr)
        self.assertNotIn(result.stdout.strip(), result.stderr)


if __name__ == "__main__":
    main()
