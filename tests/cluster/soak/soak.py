"""A soak: a job on three hosts of the lab with all collectors, 20 emitting programs that start and
end, dashboards that send requests, an agent killed every minute and a relay every five.

    soak.py MINUTES [SEED]

It prints its progress on stderr every 30 s. At the end it prints two tables: the memory of each
process with its slope, descriptors and threads, and the account of every point. stdout gets the
same tables as JSON, one object a line. Exit code 1: data is lost, duplicated or damaged, memory
grows, or a process failed; 77: no lab is possible on this machine.
"""

import json
import os
import pathlib
import random
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import account  # noqa: E402
import samples  # noqa: E402
from lab import PATIENCE_S, Lab, until, why_not  # noqa: E402

SONDE, EMITTER, FAKE_NVML, PACKAGE = (
    os.environ[name] for name in ("SONDE", "SOAK_EMITTER", "FAKE_NVML", "PACKAGE")
)
HOSTS = ("n1", "n2", "n3")
PROGRAMS, DASHBOARDS = 20, 3
AGENT_KILLED_EVERY_S, RELAY_KILLED_EVERY_S, SAID_EVERY_S, FOUND_EVERY_S = 60, 300, 30, 5
# The agents of the hosts take turns in living this long, because only a long life shows a leak.
SPARED_S = 1200
BACK_WITHIN_S = 30  # nothing is killed in the last seconds, so that restarted processes work again
COMMAND = "env > /mnt/shared/environment; exec sleep 1000000"


# The relays that are not killed: host, and begin and end as shares of the soak's time. A long life
# is followed by a short one. If the first relay ends with more memory than the second one has, it
# leaks.
RELAYS_SPARED = (("n3", 0, 0.38), ("n3", 0.38, 0.5), ("n2", 0.5, 0.88), ("n2", 0.88, 1))


def spared(now_s, of_s):
    """Returns the host whose agent is not killed now, the host whose relay is not killed now, and
    the index of that relay's life in RELAYS_SPARED."""
    life = next(
        (i for i, (_, begin, end) in enumerate(RELAYS_SPARED) if begin <= now_s / of_s < end), 0
    )
    return {
        "agent": HOSTS[int(now_s // SPARED_S) % len(HOSTS)],
        "relay": RELAYS_SPARED[life][0],
        "life": life,
    }


def say(words):
    print(words, file=sys.stderr, flush=True)


class Soak:
    def __init__(self, lab, minutes, seed):
        self.lab, self.seconds, self.seed = lab, minutes * 60, seed
        self.chance = random.Random(f"{seed} kills")
        self.folder = lab.shared / "account"
        self.folder.mkdir()
        self.sampler = samples.Sampler(lab)
        self.kills = {"agent": [], "relay": []}  # (host, monotonic seconds)
        self.bad = []

    # ---- the job

    def begin(self):
        (self.lab.shared / "gpus.txt").write_text("gpus 2\n")
        gpus = {
            "SONDE_NVML": f"/mnt/bin/{os.path.basename(FAKE_NVML)}",
            "SONDE_FAKE_NVML": "/mnt/shared/gpus.txt",
        }
        options = (
            "--hosts=n[1-3] --telemetry-level=4 --record=/mnt/shared/recording --size-limit=8G"
        )
        self.job = self.lab.start(
            "n1",
            "sh",
            "-c",
            f"exec sonde run {options} --script 'rate=5 echo soak_script 1' -- sh -c '{COMMAND}' > /mnt/shared/said 2>&1",
            env=gpus,
        )
        environment = self.lab.shared / "environment"
        until(lambda: environment.exists() and "SONDE_SOCKET" in environment.read_text(), self.said)
        env = dict(
            line.split("=", 1)
            for line in environment.read_text().splitlines()
            if line.startswith("SONDE_")
        ) | {"PYTHONPATH": "/mnt/folders/package"}
        slots = [str(number) for number in range(PROGRAMS)]
        self.programs = {
            host: self.lab.start(
                host,
                "python3",
                "/mnt/folders/soak/programs.py",
                "/mnt/shared/account",
                self.seed,
                *slots[number :: len(HOSTS)],
                env=env,
            )
            for number, host in enumerate(HOSTS)
        }
        self.dashboards = self.lab.start(
            "n1", "python3", "/mnt/folders/soak/dashboards.py", self.seed, DASHBOARDS
        )

    def said(self):
        path = self.lab.shared / "said"
        return "the job says: " + (path.read_text() if path.exists() else "nothing")

    def end(self):
        """Ends the programs, then the job, which collects the recordings in one folder."""
        for host in HOSTS:
            self.terminate(host, "programs.py")
        for host, process in self.programs.items():
            _, err = process.communicate(timeout=PATIENCE_S)
            if process.returncode != 0 or err:
                self.bad.append(
                    f"the programs of {host} ended with {process.returncode}: {err[-500:]}"
                )
        self.terminate("n1", "dashboards.py")
        out, err = self.dashboards.communicate(timeout=PATIENCE_S)
        self.requests = json.loads(out) if self.dashboards.returncode == 0 else None
        if not self.requests:
            self.bad.append(f"the dashboards ended with {self.dashboards.returncode}: {err[-500:]}")
        self.terminate("n1", "sleep 1000000")
        self.job.communicate(timeout=PATIENCE_S)

    def terminate(self, host, word):
        for pid, command in self.lab.processes(host, word).items():
            if not command.startswith(("sh ", "sonde ", "nsenter ")):
                os.kill(pid, 15)

    # ---- while it runs

    def kill(self, role, hosts, now_s):
        host = self.chance.choice(hosts)
        self.sampler.find()
        pid = self.sampler.pid_of(role, host)
        if pid is None:
            self.bad.append(f"there was no {role} on {host} after {now_s:.0f} s")
            return
        self.kills[role].append((host, time.monotonic()))
        os.kill(pid, 9)

    def watch(self):
        began = time.monotonic()
        due = {
            "agent": AGENT_KILLED_EVERY_S,
            "relay": min(RELAY_KILLED_EVERY_S, self.seconds / 2),
            "say": SAID_EVERY_S,
            "find": 0,
        }
        second = life = 0
        while (now_s := time.monotonic() - began) < self.seconds:
            if now_s >= due["find"]:
                self.sampler.find()
                due["find"] += FOUND_EVERY_S
            self.sampler.sample(now_s)
            for role, every_s, hosts in (
                ("agent", AGENT_KILLED_EVERY_S, HOSTS),
                ("relay", RELAY_KILLED_EVERY_S, HOSTS[1:]),
            ):
                if now_s >= due[role]:
                    due[role] += every_s
                    left_alone = spared(now_s, self.seconds)[role]
                    if now_s < self.seconds - BACK_WITHIN_S:
                        self.kill(role, [h for h in hosts if h != left_alone], now_s)
            if life != (life := spared(now_s, self.seconds)["life"]):
                self.kill("relay", [RELAYS_SPARED[life - 1][0]], now_s)
            if now_s >= due["say"]:
                due["say"] += SAID_EVERY_S
                self.say_progress(now_s)
            if self.job.poll() is not None:
                raise RuntimeError("the job has ended: " + self.said())
            second += 1
            time.sleep(max(0, began + second - time.monotonic()))

    def say_progress(self, now_s):
        memory = " ".join(
            f"{p.role}@{p.host} {p.samples[-1][1] / 1024:.1f}"
            for p in sorted(self.sampler.running.values(), key=lambda p: (p.role, p.host))
            if p.samples
        )
        lives = sum((self.folder / f"lives-{host}").read_text().count("\n") for host in HOSTS)
        say(
            f"{now_s:5.0f} of {self.seconds:.0f} s: {lives} programs have ended, {len(self.kills['agent'])} agents and {len(self.kills['relay'])} relays killed; MiB: {memory}"
        )

    # ---- the results

    def processes(self, series):
        """Returns a row of the table for each role and host. `series` is the number of series in
        each host's file over time, as (seconds, number)."""
        rows = []
        for (role, host), processes in self.sampler.groups().items():
            grown = samples.slope(processes)
            fds, threads, memory = (
                samples.edges(processes, 2),
                samples.edges(processes, 3),
                samples.edges(processes, 1),
            )
            kept = samples.beyond_successor(processes)
            row = {
                "process": role,
                "host": host,
                "lives": len(processes),
                "kib_first": memory[0],
                "kib_last": memory[1],
                "kib_most": max(s[1] for p in processes for s in p.samples),
                "kib_per_minute": grown and round(grown[0], 2),
                "plus_minus": grown and round(grown[1], 2),
                "kept_per_minute": kept and round(kept, 2),
                "series_per_minute": series.get(host) and samples.rise(series[host]),
                "descriptors": [int(n) for n in fds],
                "threads": [int(n) for n in threads],
            }
            self.bad += samples.faults(row)
            rows.append(row)
        return rows

    def conclude(self):
        recorded = account.Recorded(SONDE, self.lab.shared / "recording")
        rows = self.processes(recorded.series)
        say(
            "\nprocess      host  lives  KiB first    last    most   KiB/min (95 %)   leaked/min series/min  descriptors  threads"
        )
        for r in rows:
            grown = (
                "too short"
                if r["kib_per_minute"] is None
                else f"{r['kib_per_minute']:+.1f} ± {r['plus_minus']:.1f}"
            )
            say(
                f"{r['process']:<12} {r['host']:<5} {r['lives']:>5} {r['kib_first']:>10.0f} {r['kib_last']:>7.0f} {r['kib_most']:>7} {grown:>16} "
                f"{'?' if r['kept_per_minute'] is None else format(r['kept_per_minute'], '+.1f'):>12} "
                f"{'?' if r['series_per_minute'] is None else format(r['series_per_minute'], '+.1f'):<11} "
                f"{'{} → {}'.format(*r['descriptors']):<12} {'{} → {}'.format(*r['threads'])}"
            )
            print(json.dumps(r))
        total, wrong = account.settle(
            recorded, account.lives(self.folder, HOSTS), self.kills["agent"]
        )
        say(
            f"\n{'':<8} {'emitted':>10} {'stored':>10} {'missing':>8} {'unattended':>10} {'doubled':>8} {'damaged':>8}"
        )
        for kind in ("points", "spans", "adds"):
            say(
                f"{kind:<8} "
                + " ".join(
                    f"{total[f'{kind}_{column}']:>{width}}"
                    for column, width in (
                        ("emitted", 10),
                        ("stored", 10),
                        ("missing", 8),
                        ("unattended", 10),
                        ("doubled", 8),
                        ("damaged", 8),
                    )
                )
            )
        say(
            "unattended: points in the memory of programs that ended while no agent ran to read it"
        )
        say(
            f"programs: {total['programs']}; they counted {total['dropped']} as dropped; unaccounted: {total['unaccounted']}; agents recorded: {recorded.reported_drops or 'no drops'}"
        )
        for line in wrong:
            say(f"  {line}")
        if self.requests:
            say(
                f"dashboards: {self.requests['statuses']} answers by status, {self.requests['bytes'] / 1e6:.1f} MB, a node missing in {self.requests['missing']}"
            )
            self.bad += [f"a dashboard: {failure}" for failure in self.requests["failures"]]
            print(json.dumps({"dashboards": self.requests}))
        print(
            json.dumps(
                {
                    "account": total,
                    "agents_dropped": recorded.reported_drops,
                    "kills": {role: len(k) for role, k in self.kills.items()},
                    "wrong": wrong,
                }
            )
        )
        self.bad += [
            f"{name.replace('_', ' ')}: {total[name]}" for name in account.BAD if total[name]
        ]
        for words in self.bad:
            say(f"FAILED  {words}")
        print(
            json.dumps({"failed": self.bad, "seed": self.seed, "seconds": self.seconds}), flush=True
        )
        return 1 if self.bad else 0


def main():
    reason = why_not()
    if reason:
        say(f"skipped: {reason}")
        return 77
    minutes, seed = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1"
    kept = os.environ.get("SOAK_KEEP")
    if kept and os.path.exists(kept):
        sys.exit(f"soak: SOAK_KEEP={kept} exists; name a new folder")
    with Lab(
        [SONDE, EMITTER, FAKE_NVML], names=HOSTS, folders={"soak": HERE, "package": PACKAGE}
    ) as lab:
        say(f"a soak of {minutes:g} minutes, seed {seed}")
        soak = Soak(lab, minutes, seed)
        try:
            soak.begin()
            soak.watch()
            soak.end()
        except BaseException:
            say(soak.said())
            raise
        finally:
            if kept:
                shutil.copytree(lab.shared, kept)
        return soak.conclude()


sys.exit(main())
