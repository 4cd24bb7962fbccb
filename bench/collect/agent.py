"""What the agent costs while it runs: processor time of all its threads, of one core, over a stretch; and what it holds in memory beside mapped files."""

import glob
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from peers import report  # noqa: E402

SONDE = os.path.join(os.environ["SONDE_BUILD"], "src/cli/sonde")
STRETCHES = 3
STRETCH_S = float(os.environ.get("SONDE_BENCH_STRETCH", "10"))
WARM_UP_S = 3


def cpu_ns(pid):
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat"))


def beside_files_kib(pid):
    """Resident, less what is mapped from files: those pages can go at any time, and hold the recording."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
    return int(fields["RssAnon"].split()[0])


class Agent:
    """An agent by itself, ready; use it as a context."""

    def __init__(self, level, rate_s):
        self.folder = tempfile.TemporaryDirectory(prefix="sonde-bench-")
        self.process = subprocess.Popen([SONDE, "agent", f"--folder={self.folder.name}/run", f"--telemetry-level={level}",
                                         f"--rate={rate_s}", "--job=bench"])
        self.pid = self.process.pid
        give_up = time.monotonic() + 10
        while not os.path.exists(f"{self.folder.name}/run/agent.sock") and time.monotonic() < give_up:
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.folder.cleanup()


def main():
    for level in (2, 4):
        for rate_s in (1, 0.1):
            with Agent(level, rate_s) as agent:
                time.sleep(WARM_UP_S)
                shares = []
                for _ in range(STRETCHES):
                    cpu, begun = cpu_ns(agent.pid), time.monotonic_ns()
                    time.sleep(STRETCH_S)
                    shares.append(100 * (cpu_ns(agent.pid) - cpu) / (time.monotonic_ns() - begun))
                name = f"agent_level_{level}_at_{1 / rate_s:.0f}_hz"
                report("collect", name, round(statistics.median(shares), 4), "percent of a core", least=round(min(shares), 4))
                report("collect", f"{name}_memory", beside_files_kib(agent.pid), "KiB beside mapped files")


main()
