"""Tests programs for Dragon that run on every node of a job, in a lab under its Slurm."""

import json
import os
import pathlib
import shutil
import unittest

import lab as labs

PACKAGE = pathlib.Path(os.environ["PACKAGE"])
HOSTS = ("n1", "n2", "n3")
lab = None

# A program for each node: it emits with dragon.telemetry, and sends requests that the port must
# refuse.
WRITES = """
import json, os, socket, time, urllib.error, urllib.request
base = "http://localhost:4243"
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, data)) as answer: return answer.status
    except urllib.error.HTTPError as error: return error.code
deadline = time.monotonic() + 300
while True:
    try: assert ask("/api/ready") == 200; break
    except OSError:
        if time.monotonic() > deadline: raise
host = socket.gethostname()
for n in range(3): assert ask("/api/metrics", {"dps": [{"metric": "unchanged", "value": n, "tags": {"n": n}}]}) == 201
found = [ask("/api/query?start=1h-ago&m=none:unchanged")]
with socket.socket() as s: found.append(s.connect_ex((socket.gethostbyname(host), 4243)) != 0)
os.setuid(65534)
found += [ask("/api/metrics", {"dps": []}), ask("/api/ready")]
with open(f"/mnt/shared/answers/{host}", "w") as f: json.dump(found, f)
"""

COUNTS = """
import json, multiprocessing as mp, time, sonde
class Count(sonde.CollectorGroup):
    @staticmethod
    def collector_test(counter):
        with counter.get_lock():
            counter.value += 1
            return counter.value
if __name__ == "__main__":
    counter = mp.Value("i", 0)
    group = Count("counted", collection_rate=0.1, collector_args=counter)
    group.start()
    client = sonde.AnalysisClient()
    client.connect(300)
    deadline = time.monotonic() + 300
    def by_host(): return {s.tags["host"]: list(s.values) for s in client.query(metric="counted")} if "counted" in client.get_metrics() else {}
    while len([v for v in by_host().values() if len(v) > 3]) < 3: assert time.monotonic() < deadline, by_host()
    group.stop()
    # stop() may end each of the three in the middle of a call.
    while not 0 <= counter.value - sum(map(len, by_host().values())) <= 3: assert time.monotonic() < deadline, (by_host(), counter.value)
    print(json.dumps(by_host()))
"""


def setUpModule():
    global lab
    lab = labs.Lab([os.environ["SONDE"]])
    shutil.copytree(PACKAGE / "sonde", lab.shared / "package/sonde")
    (lab.shared / "answers").mkdir(mode=0o777)
    (lab.shared / "answers").chmod(0o777)


def tearDownModule():
    lab.close()


class Dragon(unittest.TestCase):
    def job(self, text, *options, command=()):
        program = lab.shared / f"{self.id().rsplit('.', 1)[1]}.py"
        program.write_text(text)
        done = lab.run("n1", "salloc", "--quiet", "-N3", "sonde", "run", "--quiet", "-l1", *options, "--", *command, "python3", f"/mnt/shared/{program.name}",
                       env={"PYTHONPATH": "/mnt/shared/package"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_programs_of_each_node_write_to_its_port(self):
        """The port on a node's loopback takes points without a token, but only from the job's user.
        The points belong to that node."""
        record = "/mnt/shared/recording"
        done = self.job(WRITES, "--dragon-compatible", f"--record={record}", command=["srun"])
        self.assertEqual(done.stderr, "")
        self.assertEqual({p.name: json.loads(p.read_text()) for p in (lab.shared / "answers").iterdir()}, {host: [404, True, 403, 403] for host in HOSTS})
        listed = json.loads(lab.run("n1", "sonde", "query", "--list", "--json", record).stdout)
        self.assertEqual(sorted((s["tags"]["host"], s["tags"]["n"], s["points"]) for s in listed if s["metric"] == "unchanged"), [(h, str(n), 1) for h in HOSTS for n in range(3)])

    def test_collectors_of_all_nodes_share_a_value(self):
        """Each call on any node gets a different number from the program's counter."""
        by_host = json.loads(self.job(COUNTS, "--no-record").stdout)
        values = sorted(v for host in HOSTS for v in by_host[host])
        self.assertEqual((len(set(values)), values[0]), (len(values), 1))
        self.assertLessEqual(values[-1], len(values) + 3)


if __name__ == "__main__":
    labs.skip_if(labs.why_not())
    unittest.main(verbosity=2)
