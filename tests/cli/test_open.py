"""`sonde open`: the page of a running job, or of a recording, in the browser of this screen."""

import json
import os
import pathlib
import signal
import stat
import urllib.error
import urllib.request

from place import Place, main, until

URL = r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{64}"
# A browser that records how it was started.
BROWSER = """#!/bin/sh
printf '%s\\n' "$@" > "{seen}.part"
cat "$1" >> "{seen}.part"
ls -l "$1" >> "{seen}.part"
mv "{seen}.part" "{seen}"
"""


class Open(Place):
    def setUp(self):
        super().setUp()
        self.env = {
            k: v
            for k, v in self.env.items()
            if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "BROWSER")
        }
        self.seen = self.root / "seen"
        self.browser = self.root / "browser"
        self.browser.write_text(BROWSER.format(seen=self.seen))
        self.browser.chmod(0o755)

    def record(self, job):
        result = self.sonde(
            "run", "-q", "-l", "1", "--", "sonde", "put", stdin="loss 1\n", env={"SONDE_JOB": job}
        )
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def status(self, url):
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code

    def check_browser(self, url):
        """The browser got a file that only we can read, and no token on its command line."""
        until(self.seen.exists, "the browser is started")
        path, rest = self.seen.read_text().split("\n", 1)
        self.assertNotIn("token", path)
        self.assertIn(f'content="0;url={url}"', rest)
        self.assertIn("-rw-------", rest)
        return pathlib.Path(path)

    def test_a_recording(self):
        self.record("one")
        process = self.start("open", "one", env={"BROWSER": str(self.browser)})
        url = process.stdout.readline().strip()
        self.assertRegex(url, f"^{URL}$")
        self.assertEqual(self.status(url), 200)
        self.assertEqual(self.status(url[:-1]), 401)
        file = self.check_browser(url)
        self.assertEqual(stat.S_IMODE(os.stat(file.parent).st_mode), 0o700)
        process.send_signal(signal.SIGINT)
        code, out, err = self.ends(process)
        self.assertEqual((code, out), (0, ""))
        self.assertEqual(err, "sonde: the page is there until Ctrl-C\n")
        self.assertFalse(file.exists())

    def test_without_a_browser(self):
        self.record("one")
        for arguments, env in (
            (("--no-browser",), {"BROWSER": str(self.browser)}),
            ((self.runs / "one",), {}),
            (("one",), {"SSH_CONNECTION": "a b c d"}),
        ):
            with self.subTest(arguments):
                process = self.start("open", *arguments, env=env)
                self.assertRegex(process.stdout.readline(), f"^{URL}\n$")
                if "SSH_CONNECTION" in env:
                    self.assertRegex(
                        process.stdout.readline(),
                        r"^on another machine, there first: ssh -NL (\d+):127\.0\.0\.1:\1 \S+\n$",
                    )
                process.send_signal(signal.SIGTERM)
                self.assertEqual(self.ends(process)[:2], (0, ""))
                self.assertFalse(self.seen.exists())

    def test_a_browser_that_is_not_there(self):
        self.record("one")
        process = self.start("open", env={"BROWSER": "/nonexistent/browser:x"})
        self.assertRegex(process.stdout.readline(), f"^{URL}\n$")
        self.assertIn("cannot start /nonexistent/browser: No such file", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ends(process)[0], 0)

    def test_several_runs(self):
        """A running job has a server of its own, but beside another run its files are served."""
        self.record("old")
        job = self.start("run", "-l", "1", "--", "sleep", "600", env={"SONDE_JOB": "new"})
        self.assertEqual(job.stderr.readline(), "sonde: job new: sonde open new shows its page\n")
        process = self.start("open", "--no-browser", "new", "old")
        url = process.stdout.readline().strip()
        self.assertRegex(url, f"^{URL}$")
        address, token = url.split("?token=")
        request = urllib.request.Request(
            address + "sonde/v1/nodes", headers={"Authorization": f"Bearer {token}"}
        )

        def states():
            with urllib.request.urlopen(request) as answer:
                return {n["job"]: n["state"] for n in json.load(answer)["nodes"]}

        until(lambda: states() == {"new": "live", "old": "closed"}, states)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ends(process)[0], 0)
        job.send_signal(signal.SIGINT)
        self.ends(job)

    def test_a_running_job(self):
        self.record("old")
        job = self.start("run", "-l", "1", "--", "sleep", "600", env={"SONDE_JOB": "new"})
        self.assertEqual(job.stderr.readline(), "sonde: job new: sonde open new shows its page\n")
        for arguments in ((), ("new",)):
            result = self.sonde("open", *arguments, env={"BROWSER": str(self.browser)})
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertRegex(result.stdout, f"^{URL}\n$")
            self.assertEqual(self.status(result.stdout.strip()), 200)
            file = self.check_browser(result.stdout.strip())
            self.seen.unlink()
        job.send_signal(signal.SIGINT)
        self.ends(job)
        self.assertFalse(file.exists())  # removed with the job's folder

    def test_nothing_there(self):
        result = self.sonde("open")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("sonde: error:", result.stderr)
        self.assertEqual(self.sonde("open", "nonsense").returncode, 1)


if __name__ == "__main__":
    main()
