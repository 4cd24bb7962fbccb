"""`sonde dump`: copies a running job's data to files."""

import json
import os
import pathlib
import socket
import threading
import time

from place import Place, main, until


class Dump(Place):
    def setUp(self):
        super().setUp()
        self.run = self.start("run", "-q", "-l", "1", "--dump-dir", self.root / "kept", "--", "sleep", "1000", env={"SONDE_JOB": "one"})
        self.job()
        put = self.sonde("put", stdin="".join(f"loss {i} rank={i % 3}\n" for i in range(300)))
        self.assertEqual(put.returncode, 0, put.stderr)

    def tearDown(self):
        self.run.terminate()
        self.ends(self.run)
        super().tearDown()

    def files(self, *parts):
        return sorted(p.name for p in pathlib.Path(self.root, *parts).iterdir())

    def query(self, *where):
        answer = self.sonde("query", "--json", "none:loss{rank=*}", *where)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_a_folder_of_copies(self):
        host = socket.gethostname().split(".")[0]
        done = self.sonde("dump", "--to", "copies")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split("\n")[0].split(), ["node", "new", "points", "travelled", "bytes", "state", "file"])
        node, points, new, size, state, path = done.stdout.split("\n")[1].split()
        self.assertEqual((node, state, path), (host, "copied", f"{self.root}/copies/{host}.sonde"))
        self.assertEqual(int(size), os.path.getsize(path))
        self.assertGreaterEqual(int(points), 300)
        self.assertGreater(int(new), 300)
        self.assertRegex(done.stdout.split("\n")[2], r"^1 file of [0-9.]+ [KM]iB; \d+ new points?, for which [0-9.]+ K?i?B travelled$")
        self.assertEqual(self.files("copies"), [f"{host}.sonde"])
        self.assertEqual(self.query(self.root / "copies"), self.query("one"))
        checked = self.sonde("inspect", self.root / "copies")
        self.assertEqual(checked.returncode, 0, checked.stdout)
        # The same for the job's name.
        more = self.sonde("put", "later", "1")
        self.assertEqual(more.returncode, 0, more.stderr)
        done = self.sonde("dump", "one", "--to", "copies", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual([(f["host"], f["state"], f["message"]) for f in answer["files"]], [(host, "updated", "")])
        self.assertEqual((answer["job"], answer["missing"]), ("one", []))
        self.assertIn("later", self.names(self.root / "copies"))

    def test_a_node_that_is_this_one_needs_no_ssh(self):
        """The configuration has the form of Dragon's files."""
        (self.root / "bin").mkdir()
        (self.root / "bin" / "ssh").write_text("#!/bin/sh\nexit 77\n")
        (self.root / "bin" / "ssh").chmod(0o755)
        self.env["PATH"] = f"{self.root}/bin:{self.env['PATH']}"
        folder = self.root / "to"
        folder.mkdir()
        for name in (socket.gethostname(), "localhost", socket.gethostname().split(".")[0]):
            config = self.root / "telemetry.yaml"
            config.write_text(f"dump_node: {name}\ndump_dir: {folder}\n")
            done = self.sonde("run", "-q", "-l", "1", "--no-record", "--config", config, "--", "sh", "-c", "sonde put x 1 && sonde dump --json")
            self.assertEqual(done.returncode, 0, (name, done.stderr))
            self.assertEqual([f["state"] for f in json.loads(done.stdout)["files"]], ["copied"], name)

    def test_a_second_one_moves_what_is_new(self):
        """The second dump equals a fresh one; so does a third one over a damaged file."""
        path = self.root / "copies" / f"{socket.gethostname().split('.')[0]}.sonde"

        def dump(to="copies"):
            done = self.sonde("dump", "--to", to, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            (file,) = json.loads(done.stdout)["files"]
            return file

        def put(count, of):
            lines = "".join(f"put {of} {self.now_ms - i} {(i * 7919 % 100003) / 8}\n" for i in range(count))
            done = self.sonde("put", stdin=lines)
            self.assertEqual(done.returncode, 0, done.stderr)

        def answer(folder):
            both = [self.sonde("query", "--json", f"none:{metric}", folder) for metric in ("many", "late")]
            self.assertEqual([done.returncode for done in both], [0, 0], both)
            return [done.stdout for done in both]
        self.now_ms = int(time.time() * 1000)
        put(100000, "many")
        first = dump()
        self.assertEqual(first["state"], "copied")
        put(1000, "late")
        second = dump()
        self.assertEqual(second["state"], "updated")
        self.assertLess(second["new_bytes"], first["new_bytes"] / 20)
        fresh = dump("fresh")
        self.assertEqual(fresh["state"], "copied")
        self.assertEqual(answer("copies"), answer("fresh"))
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(os.urandom(1000))
        self.assertNotEqual(self.sonde("inspect", "copies").returncode, 0)
        third = dump()
        self.assertLess(third["new_bytes"], first["new_bytes"])
        self.assertEqual(self.sonde("inspect", "copies").returncode, 0)
        self.assertEqual(answer("copies"), answer("fresh"))

    def test_where_it_goes(self):
        # The configured folder must exist.
        done = self.sonde("dump")
        self.one_line(done, 1, "cannot make the folder", "kept/sonde-dump-one")
        (self.root / "kept").mkdir()
        self.assertEqual(self.sonde("dump").returncode, 0)
        self.assertEqual(self.files("kept"), ["sonde-dump-one"])
        # The job has no data.
        self.run.terminate()
        self.ends(self.run)
        self.run = self.start("run", "-q", "-l", "1", "--", "sleep", "1000", env={"SONDE_JOB": "two"})
        until(lambda: self.job()["job"] == "two", "the second job")
        self.assertEqual(self.sonde("dump").returncode, 0)
        self.assertEqual(len(self.files("sonde-dump-two")), 1)
        # Another job's folder stays unchanged.
        self.one = self.query(self.root / "kept/sonde-dump-one")
        done = self.sonde("dump", "--to", self.root / "kept/sonde-dump-one")
        self.one_line(done, 1, "no data of node", "not a copy of this job")
        self.assertEqual(self.query(self.root / "kept/sonde-dump-one"), self.one)

    def test_a_node_that_is_this_one_needs_no_ssh(self):
        for job, name in (("first", "localhost"), ("second", socket.gethostname())):
            self.run.terminate()
            self.ends(self.run)
            (self.root / name).mkdir()
            env = {"SONDE_JOB": job, "SONDE_DUMP_NODE": name, "SONDE_DUMP_DIR": str(self.root / name)}
            self.run = self.start("run", "-q", "-l", "1", "--", "sleep", "1000", env=env)
            until(lambda: self.job()["job"] == job, "the job")
            done = self.sonde("dump")
            self.assertEqual((done.returncode, self.files(name)), (0, [f"sonde-dump-{job}"]), done.stderr)

    def test_some_of_it(self):
        done = self.sonde("dump", "--to", "new", "--since", "10m")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names(self.root / "new")["loss"], 300)
        done = self.sonde("dump", "--to", "none", "--since", "2100/01/01")
        self.assertEqual((done.returncode, done.stdout.split("\n")[1].split()[1]), (0, "0"), done.stderr)

    def test_mistakes(self):
        self.one_line(self.sonde("dump", "--since", "soon"), 1, "Invalid time: 'soon'")
        self.one_line(self.sonde("dump", "--to", "/nowhere/at/all"), 1, "cannot make the folder /nowhere/at/all: No such file")
        self.one_line(self.sonde("dump", "three"), 1, "three")
        self.one_line(self.sonde("run", "--dump-dir", "here", "true"), 2, "an absolute path")
        self.one_line(self.sonde("run", "--dump-node", "n2", "true"), 2, "--dump-dir")
        (self.root / "plain").write_text("")
        self.one_line(self.sonde("dump", "--to", "plain"), 1, "plain: Not a directory")

    def test_recordings_are_not_dumped(self):
        self.sonde("run", "-q", "-l", "1", "--", "true", env={"SONDE_JOB": "old"})
        replay = self.start("replay", "old")
        url, token = replay.stderr.readline().split()[1].split("/?token=")
        (self.root / "token").write_text(token)
        (self.root / "token").chmod(0o600)
        self.one_line(self.sonde("dump", env={"SONDE_URL": url, "SONDE_TOKEN_FILE": str(self.root / "token")}), 1, "only running jobs")
        replay.terminate()
        self.ends(replay)

    def test_several_at_once(self):
        """A client that comes during a dump gets an error; each client that reports success has
        left a complete file."""
        done = []
        threads = [threading.Thread(target=lambda i=i: done.append((i, self.sonde("dump", "--to", f"copy{i}")))) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertIn(0, [d.returncode for _, d in done])
        for i, d in done:
            if d.returncode == 0:
                self.assertEqual(self.query(self.root / f"copy{i}"), self.query("one"))
            else:
                self.assertIn("being made already", d.stderr)


if __name__ == "__main__":
    main()
