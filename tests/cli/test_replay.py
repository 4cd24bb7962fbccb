"""`sonde replay`: serves recordings over HTTP until it is stopped."""

import json
import signal
import urllib.error
import urllib.parse
import urllib.request

from place import Place, main, until


class Replay(Place):
    def setUp(self):
        super().setUp()
        for job, value in (("one", 1), ("two", 2)):
            result = self.sonde("run", "-q", "-l", "1", "--", "sonde", "put", stdin=f"loss {value}\n", env={"SONDE_JOB": job})
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def replay(self, *arguments, token=None):
        """Returns the process, and a function that sends requests to it. A token from a file is not
        printed."""
        process = self.start("replay", *arguments)
        line = process.stderr.readline()
        self.assertRegex(line, r"^sonde: http://127\.0\.0\.1:\d+\n$" if token else r"^sonde: http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{64}\n$")
        url, *printed = line.split()[1].split("/?token=")
        token = token or printed[0]

        def ask(path, **parameters):
            request = urllib.request.Request(f"{url}{path}?{urllib.parse.urlencode(parameters)}", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        return process, ask

    def values(self, ask, m="none:loss", start="1h-ago"):
        return sorted((e["tags"].get("job"), *e["dps"].values()) for e in ask("/api/query", start=start, m=m))

    def end(self, process):
        process.send_signal(signal.SIGINT)
        code, out, err = self.ends(process)
        self.assertEqual((code, out, err), (0, "", ""))

    def test_what_is_served(self):
        for arguments, values in (((), [(None, 2)]), (("one",), [(None, 1)]), ((self.runs / "two",), [(None, 2)]), ((self.runs,), [("one", 1), ("two", 2)]),
                                  (("one", self.runs / "two"), [("one", 1), ("two", 2)]),
                                  ((next((self.runs / "one").glob("*.sonde")),), [(None, 1)])):
            with self.subTest(arguments):
                process, ask = self.replay(*arguments)
                self.assertEqual(self.values(ask), values)
                self.end(process)

    def test_what_is_prepared(self):
        """Memory for the first answer, and room for descriptors. That is no request."""
        process, ask = self.replay("one")
        self.assertEqual(ask("/sonde/v1/status")["workers"]["answered"], 0)

        def decoded_bytes():
            return next(int(entry["value"]) for entry in ask("/api/stats") if entry["metric"] == "sonde.decoded_bytes")
        until(lambda: decoded_bytes() == 4 << 20, "memory is prepared")
        self.assertGreaterEqual(self.descriptor_room(process.pid), 1024)
        self.end(process)

    def test_metrics_of_the_catalogue_without_series(self):
        """Every job knows every name that `sonde metrics` prints: its panel is empty, without an
        error."""
        process, ask = self.replay("one")
        catalogue = json.loads(self.sonde("metrics", "--json").stdout)
        names = [name for metric in catalogue for name in (metric["name"], *metric["aliases"].split())]
        self.assertGreater(len(names), len(catalogue))
        for name in names:
            self.assertEqual(ask("/api/query", start="1h-ago", m=f"sum:{name}"), [], name)
            self.assertEqual(ask("/api/search/lookup", m=f"{name}{{host=*}}")["results"], [], name)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            ask("/api/query", start="1h-ago", m="sum:gpu_cout")
        self.assertEqual(refused.exception.code, 400)
        refused.exception.close()
        self.end(process)

    def test_flags(self):
        token = "abc-123" * 5
        (self.root / "token").write_text(token + "\n")
        (self.root / "token").chmod(0o600)
        view = self.sonde("token", "--token-file", self.root / "token").stdout.strip()
        process, ask = self.replay("one", "--as-if-now", "--dragon-compatible", "--token-file", self.root / "token", "-p", self.env["SONDE_PORT"], token=view)
        self.assertEqual(self.values(ask, start="2m-ago"), [(None, 1)])
        self.assertEqual(ask("/api/suggest", type="metrics", q="oss"), ["loss"])
        self.assertEqual(ask("/api/version", token=token)["repo"], "sonde")
        self.end(process)

    def test_mistakes(self):
        self.one_line(self.sonde("replay", "three"), 1, "'three' is not a file, folder, job or address")
        self.one_line(self.sonde("replay", self.tmp), 1, "no recording")
        self.one_line(self.sonde("replay", "one", "--as-if-then"), 2, "--as-if-then")


if __name__ == "__main__":
    main()
