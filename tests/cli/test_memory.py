"""The memory of the agent and the aggregator while a large job is recorded and queried: limited,
reported, and returned.

The tests assert bytes, not times: 396 series with 3 million points, and clients that query random
ranges until the aggregator's caches would be several times its limit."""

import json
import os
import random
import re
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from place import Place, main, until

SEED = int(os.environ.get("SONDE_TEST_SEED", "1"))
ROUNDS = float(os.environ.get("SONDE_TEST_ROUNDS", "1"))
STEPS, GROUPS, FIELDS = 7600, 4, 99
CLIENTS, QUESTIONS = 3, int(60 * ROUNDS)
MIB = 1 << 20


def own_bytes(pid):
    """Returns the resident memory, without mapped files and shared memory."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"RssAnon:\s+(\d+) kB", f.read()).group(1)) << 10


class Watch(threading.Thread):
    """The maximum of each process, sampled every 5 ms."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.most = dict.fromkeys(pids, 0)
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            for pid in self.most:
                try:
                    self.most[pid] = max(self.most[pid], own_bytes(pid))
                except (OSError, AttributeError):  # it has ended
                    pass

    def stop(self):
        self.ended.set()
        self.join()
        return self.most


class Memory(Place):
    def run_job(self, *arguments):
        # With this setting, the C library writes to all allocated memory, used or not.
        self.env.pop("MALLOC_PERTURB_", None)
        self.job_process = self.start("run", "-q", *arguments, "--", "sleep", "1000")
        job = self.job()
        agent = self.agent()
        aggregator = until(lambda: next(iter(self.alive("sonde aggregator")), None), "an aggregator")
        return job, agent, aggregator

    def fill(self, rnd, now):
        put = subprocess.Popen([os.environ["SONDE"], "put"], env=self.env, stdin=subprocess.PIPE, text=True, cwd=self.root)
        values = [rnd.randrange(10000) for _ in range(GROUPS * FIELDS)]
        for t in range(STEPS):
            for g in range(GROUPS):
                for i in range(g * FIELDS, (g + 1) * FIELDS):
                    values[i] += rnd.randint(-75, 75)
                fields = ",".join(f"f{i}={values[g * FIELDS + i] / 100}" for i in range(FIELDS))
                put.stdin.write(f"m,g=g{g} {fields} {(now + t) * 10**9}\n")
        put.stdin.close()
        self.assertEqual(put.wait(), 0)

    def question(self, rnd, now):
        start = now + rnd.randint(0, STEPS - 100)
        query = {"aggregator": rnd.choice(["avg", "sum", "p99", "none"]), "downsample": rnd.choice(["10s-avg", "60s-max", "1s-avg"]),
                 "tags": {"g": "*"} if rnd.random() < 0.5 else {}}
        return {"start": start, "end": min(now + STEPS, start + rnd.randint(60, STEPS)),
                "queries": [query | {"metric": f"m_f{rnd.randrange(FIELDS)}"} for _ in range(rnd.randint(1, 6))]}

    def ask(self, job, token, body):
        request = urllib.request.Request(job["url"] + "/api/query", data=json.dumps(body).encode(), headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request) as answer:
                answer.read()
                return answer.status, answer.headers
        except urllib.error.HTTPError as error:
            error.read()
            return error.code, error.headers

    def ask_all(self, job, token, now):
        """Returns the status codes and their frequency; a response to a request that finds no
        memory has Retry-After."""
        codes, failures = {}, []

        def client(seed):
            rnd = random.Random(seed)
            for _ in range(QUESTIONS):
                code, headers = self.ask(job, token, self.question(rnd, now))
                codes[code] = codes.get(code, 0) + 1
                if code == 503 and not headers.get("Retry-After"):
                    failures.append("503 without Retry-After")

        clients = [threading.Thread(target=client, args=(SEED * 100 + n,)) for n in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        self.assertEqual(failures, [])
        return codes

    def test_both_keep_within_their_bounds(self):
        print(f"# SONDE_TEST_SEED={SEED}")
        job, agent, aggregator = self.run_job()
        watch = Watch([agent, aggregator])
        watch.start()
        now = int(time.time()) - STEPS
        self.fill(random.Random(SEED), now)
        with open(job["token_file"]) as f:
            token = f.read().strip()
        codes = self.ask_all(job, token, now)
        # All points, as recorded, exceed the memory, so this request alone is refused.
        everything = {"start": now, "end": now + STEPS, "queries": [{"aggregator": "none", "metric": f"m_f{i}"} for i in range(FIELDS)]}
        code, headers = self.ask(job, token, everything)
        self.assertIn(code, (413, 503))
        self.assertEqual(code == 503, headers.get("Retry-After") is not None)
        self.assertEqual(self.ask(job, token, self.question(random.Random(SEED), now))[0], 200)
        self.assertEqual(set(codes), {200}, codes)
        status, said = json.loads(self.sonde("status", "--json").stdout)[0]["memory"], self.sonde("status").stdout
        self.assertEqual((status["agent_limit_bytes"], status["aggregator_limit_bytes"]), (16 * MIB, 64 * MIB))
        for process in ("agent", "aggregator"):
            self.assertGreater(status[f"{process}_bytes"], 0)
            self.assertLess(status[f"{process}_bytes"], status[f"{process}_limit_bytes"])
        self.assertRegex(said, r"memory: agent [0-9.]+ of 16 MiB, aggregator [0-9.]+ of 64 MiB, beside the mapped recording")
        self.job_process.terminate()
        self.ends(self.job_process)
        most = watch.stop()
        self.assertLessEqual(most[agent], 16 * MIB, f"the agent took {most[agent] / MIB:.1f} MiB")
        self.assertLessEqual(most[aggregator], 64 * MIB, f"the aggregator took {most[aggregator] / MIB:.1f} MiB")
        print(f"# agent {most[agent] / MIB:.1f} MiB, aggregator {most[aggregator] / MIB:.1f} MiB at most; answers {codes}")

    def test_a_larger_query_memory_raises_the_bound(self):
        """The user's option counts, and no other limit overrides it."""
        job, _, _ = self.run_job("--query-memory=512M")
        with open(job["token_file"]) as f:
            request = urllib.request.Request(job["url"] + "/sonde/v1/status", headers={"Authorization": f"Bearer {f.read().strip()}"})
        with urllib.request.urlopen(request) as answer:
            limits = json.load(answer)["limits"]
        self.assertEqual((limits["query_memory_bytes"], limits["total_memory_bytes"]), (512 * MIB, 512 * MIB))


if __name__ == "__main__":
    main()
