"""Finds slow GPUs: times the same small piece of work on each GPU again and again, and applies the
rule of docs/detect.md.

    each GPU, every round   slow-gpu = seconds that `sonde probe` measures; none if the GPU has no
                            room: then its clock under load counts
    the first node          points ─▶ rounds ─▶ Judge ─▶ slow GPUs ─▶ Detector: the job is restarted
                            without their nodes
"""

import logging
import math
import os
import subprocess
from collections.abc import Iterator
from typing import Any, Optional

from ._detect import Judge, Verdict
from ._service import command
from .collector import primary_node
from .detector import CollectorDetectorGroup, Data

_log = logging.getLogger(__name__)

_PROBE_TIMEOUT_S = 10.0  # the duration that counts for a probe that takes longer
_PROBED, _CLOCK, _BUSY = "slow-gpu", "gpu_sm_clock_hertz", "gpu_utilization_percent"
_BUSY_PERCENT = 50  # a GPU that is less busy has no meaningful clock


def devices() -> list[str]:
    """Returns the devices of this node to probe: its GPUs ("gpu:0"), or those of
    SONDE_PROBE_DEVICES (``cpu:0,cpu:1``: two cores)."""
    virtual = os.environ.get("SONDE_PROBE_DEVICES")
    if virtual is not None:
        return [word for word in virtual.split(",") if word]
    return sorted({f"gpu:{tags['gpu']}" for _, _, tags in _lines(_ask("gpu").stdout)}, key=lambda device: int(device[4:]))


def probe(device: str) -> Optional[float]:
    """Returns the seconds that a device ("gpu:0", "cpu:3") takes for the work, in a process of its
    own. Returns None if the device is not available now (its memory is full, or another program has
    exclusive access). Raises RuntimeError if the device cannot be used."""
    done = _ask(device)
    for name, value, _ in _lines(done.stdout):
        if name == "probe_compute_seconds":
            return value
    if "without a probe" in done.stderr:
        return None
    if "in time" in done.stderr:
        return _PROBE_TIMEOUT_S
    raise RuntimeError(done.stderr.strip() or f"sonde probe {device} gave no figure (exit code {done.returncode})")


def _ask(what: str) -> "subprocess.CompletedProcess[str]":
    words = [command(), "probe", f"--timeout={_PROBE_TIMEOUT_S:g}", what]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _lines(text: str) -> Iterator[tuple[str, float, dict[str, str]]]:
    for line in text.splitlines():
        name, value, *tags = line.split()
        yield name, float(value), dict(tag.split("=", 1) for tag in tags)


class _Jury:
    """Cuts the points of several members into rounds of `every_s` seconds, and passes the rounds to
    a Judge.

    A round is complete when every known member has a point in it or after it, and at the latest two
    rounds later. A point may arrive after its round was judged, because its node was busy and now
    reports several rounds at once. It then counts in the next round in which the member has no
    point.
    """

    LATE = 2
    LATE_S = 20.0  # queries include points that arrive this late
    AHEAD = 4  # points that arrive together fill so many rounds; then the last counts
    MEMBERS_MAX = 65536  # the limit of a Judge; further members are left out

    def __init__(self, every_s: float, **options: Any) -> None:
        self._judge = Judge(**options)
        self._every_s = every_s
        self._next: Optional[int] = None  # the first incomplete round
        # round → member → value, number of the point (1 = the first)
        self._rounds: dict[int, dict[str, tuple[float, int]]] = {}
        self._newest: dict[str, int] = {}  # the round of each member's newest point, by its time
        self._taken: dict[str, int] = {}  # the round in which that point counts
        # each member's newest time, and its number of points
        self._given: dict[str, tuple[float, int]] = {}
        self._verdicts: dict[str, Verdict] = {}
        # slow members, and the number of the point with which each was found
        self._found: dict[str, int] = {}

    def add(self, member: str, time_s: float, value: float) -> None:
        """Adds a point. Repeated points count once."""
        newest_s, count = self._given.get(member, (-math.inf, 0))
        if time_s <= newest_s or (count == 0 and len(self._given) == self.MEMBERS_MAX):
            return
        self._given[member] = time_s, count + 1
        number, taken, before = int(time_s // self._every_s), self._taken.get(member, -1), self._newest.get(member, -1)
        self._newest[member] = number
        if self._next is not None and (number < self._next or before < number <= taken):
            number = min(max(self._next, taken + 1), self._next + self.AHEAD - 1)
        self._rounds.setdefault(number, {})[member] = value, count + 1
        self._taken[member] = number

    def decide(self) -> None:
        """Judges each complete round once."""
        for number in sorted(self._rounds):
            if min(self._newest.values()) < number and max(self._newest.values()) < number + self.LATE:
                break
            self._judge_round(self._rounds.pop(number))
            self._next = number + 1

    def _judge_round(self, points: dict[str, tuple[float, int]]) -> None:
        self._judge.round({member: value for member, (value, _) in points.items()})
        self._verdicts = self._judge.verdicts()
        for member, (_, number) in points.items():
            if self._verdicts[member].state == "slow":
                self._found.setdefault(member, number)
            else:
                self._found.pop(member, None)

    def verdicts(self) -> dict[str, Verdict]:
        return self._verdicts

    def found_with(self, member: str) -> int:
        """The number of the point with which a slow member was found."""
        return self._found[member]

    def needed_since_s(self) -> float:
        """Returns the time before which queries need no points, because they are known or would be
        too late to count. Infinite before the first judged round."""
        if self._next is None:
            return math.inf
        return max(min(time_s for time_s, _ in self._given.values()), self._next * self._every_s - self.LATE_S)


def _member(series: dict[str, Any]) -> str:
    tags = series["tags"]
    return f"{tags.get('host', '?')}/{tags.get('gpu', '?')}"


class SlowGPUDetector(CollectorDetectorGroup):
    """Finds a GPU that is slower than the others, or than it was, and restarts the job without its
    node. The primary node is never excluded.

    Every `collection_rate` seconds, each GPU executes the same small piece of work (`sonde probe`:
    some milliseconds, in a process of its own). Its duration is the metric `slow-gpu`, in seconds.
    docs/detect.md describes the rule. If a GPU has no memory left for the probe, its clock under
    load is compared instead, in runs of level 3 and above.

    `analysis_args` is a mapping of Judge's keyword arguments (``{"slowdown": 1.5}``).
    SONDE_PROBE_DEVICES names devices to probe instead of GPUs.
    """

    def __init__(
        self,
        collection_rate: float = 3,
        restartable_ddicts: Optional[list[Any]] = None,
        analysis_args: Any = None,
        collector_args: Any = None,
    ) -> None:
        super().__init__(
            _PROBED, True, collection_rate, [primary_node()], restartable_ddicts, ["host", "gpu"], collector_args, analysis_args
        )
        options = dict(analysis_args or {})
        self._probes = _Jury(collection_rate, **options)
        self._clocks = _Jury(collection_rate, **{**options, "less_is_worse": True})
        self._named: set[str] = set()

    @property
    def sacred_hostname(self) -> str:
        """Returns the node that is never excluded: the job's first."""
        return primary_node()

    def _watched(self) -> list[str]:
        return [_PROBED, _CLOCK, _BUSY]

    @staticmethod
    def collector_test(collector_args: Any) -> Optional[float]:
        """Runs in a process that sees one GPU. Returns seconds, or None if the GPU has no room."""
        return probe(os.environ.get("SONDE_PROBE_DEVICE", "gpu:0"))

    def analyze_data(  # type: ignore[override]
        self, data: Data, analysis_args: Any
    ) -> tuple[bool, list[str]]:
        """Returns whether a slow GPU is on a node that may be excluded, and the hosts of all slow
        GPUs. It judges every point once, even if `data` repeats it."""
        self._take(data)
        self._probes.decide()
        self._clocks.decide()
        needed_since_s = min(self._probes.needed_since_s(), self._clocks.needed_since_s())
        if needed_since_s < math.inf:
            self.start_time = max(self.start_time, int(needed_since_s))
        verdicts = {member: verdict for member, verdict in self._probes.verdicts().items() if verdict.state != "silent"}
        probed = set(verdicts)
        verdicts = {**self._clocks.verdicts(), **verdicts}
        slow = {member: verdict for member, verdict in verdicts.items() if verdict.state == "slow"}
        for member in sorted(slow.keys() - self._named):
            verdict = slow[member]
            whom, times = ("the others", verdict.peers) if verdict.by_peers else ("its own best", verdict.own)
            found = f"probe {self._probes.found_with(member)}" if member in probed else f"value {self._clocks.found_with(member)} of its clock"
            _log.warning("GPU %s is slow: %.2f times as long as %s, in %d rounds running, found with %s", member, times, whom, verdict.rounds, found)
        self._named = set(slow)
        hosts = sorted({member.rpartition("/")[0] for member in slow})
        return not set(hosts) <= set(self.sacred_nodes or ()), hosts

    def _take(self, data: Data) -> None:
        busy = {
            (_member(series), second)
            for series in data
            for second, percent in series["dps"].items()
            if series["metric"] == _BUSY and percent >= _BUSY_PERCENT
        }
        for series in data:
            member = _member(series)
            for second, value in sorted(series["dps"].items(), key=lambda point: float(point[0])):
                if series["metric"] == _PROBED:
                    self._probes.add(member, float(second), value)
                elif series["metric"] == _CLOCK and (member, second) in busy:
                    self._clocks.add(member, float(second), value)
