"""The configuration file: both families of keys, their priority, and messages about mistakes."""

import json
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request

from place import Place, free_port, main, until


class Config(Place):
    def write(self, text, name="sonde.yaml"):
        path = self.root / name
        path.write_text(text)
        return path

    def refused(self, text, *words):
        path = self.write(text)
        self.one_line(self.sonde("run", "--config", path, "true"), 2, str(path), *words)
        self.nothing_left()

    def recorded(self, *arguments, env=None):
        """The contents of run.json after a run with these arguments."""
        before = self.recordings()
        result = self.sonde("run", *arguments, "true", env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        (new,) = set(self.recordings()) - set(before)
        return json.loads((self.runs / new / "run.json").read_text())

    def test_both_names(self):
        self.assertEqual(self.recorded("--config", self.write("rate: 0.25\n"))["rate"], 0.25)
        self.assertEqual(self.recorded("--config", self.write("collector_rate: 0.125\n"))["rate"], 0.125)

    def test_collectors(self):
        """Sources and their rates: a mapping in the file; a list on the command line overrides
        it."""
        path = self.write("collectors: {memory: off, cpu: 0.05, load: 0.05}\n")
        script = "until sonde query --list | grep -q load_1m; do sleep 0.02; done; sonde query --list"
        listed = self.sonde("run", "-q", "--config", path, "--", "sh", "-c", script)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertNotIn("memory_free_bytes", listed.stdout)
        self.assertIn("cpu_percent", listed.stdout)
        listed = self.sonde("run", "-q", "--config", path, "--collect=load,memory=0.1", "--", "sh", "-c", script)
        self.assertIn("memory_free_bytes", listed.stdout)
        self.assertNotIn("cpu_percent", listed.stdout)
        self.one_line(self.sonde("run", "--collect=cpi=1", "true"), 2, "--collect", "no source 'cpi'", "did you mean cpu?")
        self.one_line(self.sonde("run", "--collect=cpu=often", "true"), 2, "--collect", "'often'", "seconds from 0.01 to 3600")
        self.refused("rate: 1\ncollectors:\n  memry: off\n", ":2: collectors", "did you mean memory?")
        self.refused("collectors: [cpu]\n", ":1: collectors takes one value")
        self.refused("collectors: {cpu: [1]}\n", ":1: collectors takes lines of the form name: word")
        self.refused("collectors: {}\n", ":1: collectors takes lines of the form name: word")
        self.nothing_left()

    def test_scripts(self):
        """Commands that print points, as a list in the file or as flags; they run in the folder
        where `sonde run` was called."""
        (self.root / "probe.sh").write_text("echo probed 3 from=$1\n")
        path = self.write("scripts:\n  - sh probe.sh file\n  - command: sh probe.sh rated\n    rate: 0.1\n    name: one\n    timeout: 5\n")
        script = "until sonde query --list | grep -q probed; do sleep 0.02; done; sleep 0.3"
        self.assertEqual(self.sonde("run", "-q", "--config", path, "--", "sh", "-c", script).returncode, 0)
        listed = self.sonde("query", "--list").stdout
        self.assertRegex(listed, r"probed\{from=file,host=\S+\} +gauge +1 ")
        self.assertRegex(listed, r"probed\{from=rated,host=\S+\}")
        self.assertEqual(self.sonde("run", "-q", "--script", "sh probe.sh a", "--script=sh probe.sh b", "--", "sh", "-c", script).returncode, 0)
        listed = self.sonde("query", "--list").stdout
        self.assertRegex(listed, r"probed\{from=a,")
        self.assertRegex(listed, r"probed\{from=b,")
        self.one_line(self.sonde("run", "--script", "a", "--script", "rate=often b", "true"), 2, "--script", "'often'")
        for wrong in ("[{rate: 1}]", "[[a]]", "[{command: a, every: 1}]", "[]", "[{command: a, name: b c}]", "[{command: a, rate: [1]}]"):
            self.refused(f"scripts: {wrong}\n", ":1: scripts")
        self.refused("scripts: {a: b}\n", ":1: scripts takes one value")
        self.nothing_left()

    def test_a_script_that_fails_after_slow_starts(self):
        """A slow start is no success, so the script is reported once."""
        (self.root / "slow.sh").write_text("sleep 2.2; echo probed 3; exit 3\n")
        script = 'until [ "$(sonde query --csv none:sonde_script_exit_code | grep -c slow)" -ge 2 ]; do sleep 0.1; done'
        done = self.sonde("run", "--script", "name=slow sh slow.sh", "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("slow: exit code 3"), 1, done.stderr)
        self.assertNotIn("works again", self.sonde("query", "--annotations", "last").stdout)
        self.nothing_left()

    def test_order(self):
        path = self.write("telemetry_level: 1\nrate: 0.25\n")
        self.assertEqual(self.recorded()["level"], 2)
        self.assertEqual(self.recorded("--config", path)["level"], 1)
        self.assertEqual(self.recorded("--config", path, env={"SONDE_LEVEL": "3"})["level"], 3)
        self.assertEqual(self.recorded("--config", path, "-l", "4", env={"SONDE_LEVEL": "3"})["level"], 4)

    def test_named_by_environment(self):
        path = self.write("telemetry_level: 1\n")
        other = self.write("telemetry_level: 3\n", "other.yaml")
        self.assertEqual(self.recorded(env={"SONDE_CONFIG": str(path)})["level"], 1)
        self.assertEqual(self.recorded(env={"DRAGON_TELEMETRY_CONFIG": str(path)})["level"], 1)
        self.assertEqual(self.recorded(env={"SONDE_CONFIG": str(other), "DRAGON_TELEMETRY_CONFIG": str(path)})["level"], 3)

    def test_relative_path(self):
        self.write("telemetry_level: 1\n", "here.yaml")
        self.assertEqual(self.recorded(env={"SONDE_CONFIG": "here.yaml"})["level"], 1)
        inside = self.sonde("run", "-q", "--config", "here.yaml", "--", "sh", "-c", "cd /; echo $SONDE_CONFIG; sonde put loss 1")
        self.assertEqual((inside.returncode, inside.stdout, inside.stderr), (0, f"{self.root}/here.yaml\n", ""))

    def test_a_file_of_dragons(self):
        port = self.env["SONDE_PORT"]
        elsewhere = self.root / "db"
        elsewhere.mkdir()
        path = self.write(f"aggregator_port: {port}\ntsdb_server_port: {free_port()}\ncollector_rate: 0.5\ndefault_tmdb_window: 300\n"
                          f"default_tmdb_dir: {elsewhere}\ndelete_tmdb: 1\n")
        result = self.sonde("run", "--config", path, "--", "sh", "-c", "echo $SONDE_SOCKET", env={"SONDE_PORT": ""})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith(str(elsewhere)), result.stdout)
        self.assertEqual(self.recordings(), [])
        self.nothing_left_in(elsewhere)

    def test_dragons_key(self):
        """auth_key is the job's token: clients exchange it, and get the permissions of Dragon's
        clients."""
        key = "k" * 40
        path = self.write(f"auth_key: {key}\n")
        path.chmod(0o600)
        ask = textwrap.dedent("""
            import json, os, sys, urllib.error, urllib.request
            def ask(path, data=None, token=None):
                headers = {"Authorization": "Bearer " + token.encode().decode("latin-1")} if token else {}
                try:
                    with urllib.request.urlopen(urllib.request.Request(os.environ["SONDE_URL"] + path, data, headers)) as answer:
                        return [answer.status, json.load(answer)]
                except urllib.error.HTTPError as error:
                    return [error.code, json.load(error)]
            key = sys.argv[1]
            print(json.dumps(ask("/api/token", json.dumps({"auth_key": key}).encode())))
            print(ask("/api/aggregators")[0], ask("/api/aggregators", token=key)[0], ask("/api/reboot", b"hostnames=a", key)[0])
        """)
        done = self.sonde("run", "-q", "-l", "1", "--no-record", "--config", path, "--", sys.executable, "-c", ask, key)
        self.assertEqual((done.stdout.splitlines(), done.stderr), ([f'[200, {{"access_token": "Bearer {key}"}}]', "401 200 501"], ""))
        for text, mode, words in ((f"auth_key: {key}", 0o644, "can be opened by other users"), ("auth_key: short", 0o600, "it has to be 32 to 255 of"), (f"auth_key: {'ü' * 40}", 0o600, "it has to be 32 to 255 of")):
            path = self.write(f"\n{text}\n")
            path.chmod(mode)
            done = self.sonde("run", "-q", "-l", "1", "--no-record", "--config", path, "--", sys.executable, "-c", ask, text[10:])
            self.assertEqual((done.stdout.splitlines(), done.stderr.count("\n")), (['[400, {"msg": "Bad auth_key"}]', "401 401 401"], 1), done.stderr)
            self.assertIn(f"{path}:2: auth_key is not used, the job makes its own token: ", done.stderr)
            self.assertIn(words, done.stderr)
        fixed = self.root / "fixed"
        done = self.sonde("run", "-q", "-l", "1", "--no-record", "--config", path, "--token-file", fixed, "--", "sh", "-c", "cat $SONDE_TOKEN_FILE")
        self.assertEqual(done.stdout, fixed.read_text())

    def test_reading_without_a_token(self):
        """Like Grafana with Dragon's data source; a reverse tunnel in addition is refused."""
        path = self.write("view_without_token: true\n")
        ask = textwrap.dedent("""
            import os, urllib.error, urllib.request
            for path, data in (("/api/suggest", None), ("/api/put", b"{}")):
                try: print(urllib.request.urlopen(os.environ["SONDE_URL"] + path, data).status)
                except urllib.error.HTTPError as error: print(error.code)
        """)
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--no-record", "--config", path, "--", sys.executable, "-c", ask).stdout, "200\n403\n")
        self.assertEqual(self.sonde("run", "-q", "-l", "1", "--no-record", "--", sys.executable, "-c", ask).stdout, "401\n401\n")
        self.one_line(self.sonde("run", "--config", path, "--remote-tunnel-node", "login", "--", "true"), 2, "--view-without-token and --remote-tunnel-node", "sonde token --url")

    def test_mistakes(self):
        self.refused("rate: fast\n", ":1: rate: 'fast' is not seconds")
        self.refused("rate: 1\ncollector_rate: 1\n", ":2:", "given twice")
        self.refused("rate: [1, 2]\n", ":1: rate takes one value")
        self.refused("- rate\n", ":1: expected lines of the form key: value")
        self.refused("rate: 1\n  port: [\n", ":2:")
        self.refused("? [a]\n: 1\n", ":1: a key has to be a word")
        self.refused("x" * 300000, "more than 262144 bytes")

    def test_a_window_of_dragons(self):
        """No answer contains points from before the window, even long before the store has enough
        of them to remove an extent."""
        path = self.write("default_tmdb_window: 2\n")
        self.start("run", "-q", "-l", "1", "--no-record", "--config", path, "--", "sleep", "600")
        until(lambda: self.sonde("put", stdin="aged 1\n").returncode == 0, "the agent")
        job = self.job()

        def points():
            question = urllib.request.Request(job["url"] + "/api/query?start=1h-ago&m=none:aged", headers={"Authorization": f"Bearer {token}"})
            try:
                return sum(len(series["dps"]) for series in json.load(urllib.request.urlopen(question)))
            except urllib.error.HTTPError as error:
                return error.code  # the metric does not exist yet
        token = self.sonde("token").stdout.strip()
        until(lambda: points() == 1, "the point")
        until(lambda: points() == 0, "the end of the window")

    def test_unknown_keys_are_ignored_and_said(self):
        path = self.write("colector_rate: 1\n\nwibble: {a: [1]}\nrate: 7\n")
        result = self.sonde("run", "--no-record", "--config", path, "--", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(":1: ignored the unknown key 'colector_rate'; did you mean collector_rate?", result.stderr)
        self.assertIn(":3: ignored the unknown key 'wibble'", result.stderr)
        # The warning appears only there: commands that query a job do not warn about it.
        self.assertNotIn("ignored", self.sonde("status", "--config", path).stderr)

    def test_options_of_dragons_launcher(self):
        """Options with the same meaning are accepted; for others, the message names the
        replacement."""
        done = self.sonde("run", "-r", "-e", "--no-record", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.root.glob("-*")), [])
        for words, hint in ((("--hostlist=a,b",), "--hosts=LIST"), (("-s",), "leave it out"), (("-N", "2"), "--nodes=N"), (("-qN", "2"), "--nodes=N"), (("-T", "2"), "--telemetry-level=N"),
                            (("--idle", "1"), "in reserve"), (("-i1",), "in reserve"), (("-w", "ssh"), "leave it out"), (("-l", "5"), "from 0 to 4")):
            self.one_line(self.sonde("run", *words, "true"), 2, hint)
        for path in (("--record", "-e"), ("--record=-e",), ("-c", "-q")):
            self.one_line(self.sonde("run", *path, "true"), 2, "looks like an option")

    def test_missing_file(self):
        self.one_line(self.sonde("run", "--config", self.root / "no.yaml", "true"), 2, "no.yaml", "No such file")

    def test_empty_file(self):
        self.assertEqual(self.recorded("--config", self.write("# nothing yet\n"))["level"], 2)

    def standing(self, user=None, system=None):
        """Makes the user's and the system's file; returns their paths and the environment."""
        mine, everybodys = self.root / ".config" / "sonde.yaml", self.root / "etc-sonde.yaml"
        for path, text in ((mine, user), (everybodys, system)):
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        return mine, everybodys, {"SONDE_SYSTEM_CONFIG": str(everybodys)}

    def test_standing_files(self):
        """The system's file, then the user's file, then the named one; later ones override, and
        single keys add up."""
        mine, everybodys, env = self.standing("telemetry_level: 3\n", "telemetry_level: 1\nrate: 0.25\n")
        self.assertEqual(self.recorded()["level"], 3)
        described = self.recorded(env=env)
        self.assertEqual((described["level"], described["rate"]), (3, 0.25))
        named = self.write("telemetry_level: 4\n")
        described = self.recorded("--config", named, env=env)
        self.assertEqual((described["level"], described["rate"]), (4, 0.25))
        self.assertEqual(self.recorded("--config", named, env=env | {"SONDE_LEVEL": "2"})["level"], 2)
        other = self.root / "other"
        other.mkdir()
        (other / "sonde.yaml").write_text("telemetry_level: 4\n")
        self.assertEqual(self.recorded(env=env | {"XDG_CONFIG_HOME": str(other)})["level"], 4)
        # The standard for this variable tells programs to ignore relative paths.
        self.assertEqual(self.recorded(env=env | {"XDG_CONFIG_HOME": "other"})["level"], 3)

    def test_agents_of_a_run_read_no_file(self):
        """Their arguments contain all settings, so a variable's `false` stays one in the agent."""
        _, _, env = self.standing("verbose: true\ndragon_compatible: true\ntelemetry_level: 4\n")
        done = self.sonde("run", "-l", "1", "--no-record", "--", "sh", "-c", 'sonde query --list >&2; echo "[$DRAGON_TELEMETRY_LEVEL]"',
                          env=env | {"SONDE_VERBOSE": "false", "SONDE_DRAGON_COMPATIBLE": "no"})
        self.assertEqual((done.returncode, done.stdout), (0, "[]\n"), done.stderr)
        self.assertNotIn("sonde_agent", done.stderr)  # a metric of level 4

    def test_mistakes_in_standing_files_stop_nothing(self):
        mine, everybodys, env = self.standing("rate: fast\ntelemetry_level: 3\nrecrod: x\n", "rate: 0.25\n")
        for text, words in (("rate: fast\ntelemetry_level: 3\n", f"{mine}:1: rate: 'fast' is not seconds"),
                            ("telemetry_level: 3\nport: [1]\n", f"{mine}:2: port takes one value"),
                            ("telemetry_level: 3\nrate: 1\ncollector_rate: 1\n", f"{mine}:3: 'collector_rate' is given twice"),
                            ("telemetry_level: 3\nrecrod: x\n", f"{mine}:2: ignored the unknown key 'recrod'; did you mean record?")):
            mine.write_text(text)
            done = self.sonde("run", "-q", "--no-record", "--", "sh", "-c", "echo $SONDE_LEVEL", env=env)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (0, "3\n", 1), done.stderr)
            self.assertIn(words, done.stderr)
        for text, words in (("telemetry_level: 3\n  port: [\n", f"{mine}:2: "), ("- a\n", f"{mine}:1: expected lines"), ("x" * 300000, "more than 262144 bytes")):
            mine.write_text(text)
            done = self.sonde("run", "-q", "--no-record", "--", "sh", "-c", "echo $SONDE_LEVEL", env=env)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (0, "2\n", 1), done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn("the file is ignored", done.stderr)
        mine.unlink()
        mine.mkdir()
        done = self.sonde("run", "-q", "--no-record", "--", "true", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"cannot read configuration file {mine}: Is a directory; the file is ignored", done.stderr)

    def test_show(self):
        """Each setting, its value, and its source."""
        mine, everybodys, env = self.standing("# mine\ntelemetry_level: 3\nprot: 1\n", "rate: 0.25\n\ncollectors: {cpu: 0.5, disk: off}\n")
        env |= {"SONDE_WINDOW": "60", "DRAGON_TELEMETRY_CONFIG": str(self.write("co2: 300\n"))}
        done = self.sonde("config", "--show", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}
        self.assertEqual(lines["telemetry_level"], ["3", f"{mine}:2"])
        self.assertEqual(lines["rate"], ["0.25", f"{everybodys}:1"])
        self.assertEqual(lines["collectors"], ["cpu=0.5,disk=off", f"{everybodys}:3"])
        self.assertEqual(lines["co2"], ["300", f"{self.root}/sonde.yaml:1"])
        self.assertEqual(lines["port"], [self.env["SONDE_PORT"], "SONDE_PORT"])
        self.assertEqual(lines["max_restarts"], ["-1", "default"])
        self.assertEqual(lines["user"], [str(mine), "read"])
        self.assertEqual(lines["system"], [str(everybodys), "read"])
        self.one_line(subprocess.CompletedProcess([], 2, "", done.stderr), 2, f"{mine}:3: ignored the unknown key 'prot'; did you mean port?")
        everybodys.unlink()
        self.assertRegex(self.sonde("config", "--show", env=env).stdout, f"{everybodys} +does not exist")
        key = "k" * 40
        mine.write_text(f"auth_key: {key}\n")
        mine.chmod(0o600)
        shown = self.sonde("config", "--show").stdout
        self.assertIn("auth_key", shown)
        self.assertNotIn(key, shown)

    def test_contradictions(self):
        self.one_line(self.sonde("run", "--record", "x", "--no-record", "true"), 2, "contradict")
        path = self.write("no_record: true\n")
        self.assertEqual(self.sonde("run", "--config", path, "--record", self.root / "kept", "true").returncode, 0)
        self.assertTrue((self.root / "kept" / "run.json").exists())


if __name__ == "__main__":
    main()
