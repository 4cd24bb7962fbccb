"""Which GPU is slower than the others: the same small piece of work on each of them, again and
again, and the rule of docs/detect.md.

    per GPU and round   slow-gpu = seconds that `sonde probe` measures; none where the GPU cannot be had (no room): then its clock while it is busy counts
    the first node      points ─▶ rounds ─▶ Judge ─▶ who is slow ─▶ Detector: the job is started again without that node
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

_PROBE_TIMEOUT_S = 10.0  # a GPU that has not answered by then is as slow as that
_PROBED, _CLOCK, _BUSY = "slow-gpu", "gpu_sm_clock_hertz", "gpu_utilization_percent"
_BUSY_PERCENT = 50  # an idle GPU's clock says nothing


def devices() -> list[str]:
    """What can be probed on this node: its GPUs ("gpu:0"), or what SONDE_PROBE_DEVICES names in
    their place (``cpu:0,cpu:1``: two cores)."""
    virtual = os.environ.get("SONDE_PROBE_DEVICES")
    if virtual is not None:
        return [word for word in virtual.split(",") if word]
    return sorted({f"gpu:{tags['gpu']}" for _, _, tags in _lines(_ask("gpu").stdout)}, key=lambda device: int(device[4:]))


def probe(device: str) -> Optional[float]:
    """Seconds that a device ("gpu:0", "cpu:3") takes for the work, in a process that ends with it;
    None: it cannot be had now (its memory is full, another program has it to itself). RuntimeError:
    it cannot be used."""
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
    """A Judge, and what it is given: points of several members, cut into rounds of `every_s`
    seconds.

    A round is complete when everybody who has given anything so far has given something in it or
    after it; when somebody does not, two rounds later. A point whose round has been judged by then
    (its node was busy, and answers late and for several rounds at once) counts in the next round
    where there is none of that member.
    """

    LATE = 2
    LATE_S = 20.0  # that a point may be late and still be asked for
    AHEAD = 4  # rounds, for points that come late together; of more of them the last counts
    MEMBERS_MAX = 65536  # as many as a Judge takes; further ones are left out

    def __init__(self, every_s: float, **options: Any) -> None:
        self._judge = Judge(**options)
        self._every_s = every_s
        self._next: Optional[int] = None  # the first round that is not complete
        # values, and the how manieth of its member's points each is
        self._rounds: dict[int, dict[str, tuple[float, int]]] = {}
        self._newest: dict[str, int] = {}  # round of each member's newest point, by its time
        self._taken: dict[str, int] = {}  # the last round in which it counts
        # the newest point's time, and how many there were
        self._given: dict[str, tuple[float, int]] = {}
        self._verdicts: dict[str, Verdict] = {}
        # of who is slow: with the how manieth of its points that was found
        self._found: dict[str, int] = {}

    def add(self, member: str, time_s: float, value: float) -> None:
        """A point; each counts once, however often it is given."""
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
        """Judges the rounds that are complete by now, each once."""
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
        """Of one that is slow: with the how manieth of its points that was found."""
        return self._found[member]

    def needed_since_s(self) -> float:
        """What is older is there already, or comes too late. Infinite: nothing has been judged
        yet."""
        if self._next is None:
            return math.inf
        return max(min(time_s for time_s, _ in self._given.values()), self._next * self._every_s - self.LATE_S)


def _member(series: dict[str, Any]) -> str:
    tags = series["tags"]
    return f"{tags.get('host', '?')}/{tags.get('gpu', '?')}"


class SlowGPUDetector(CollectorDetectorGroup):
    """Finds the GPU that is slower than the others, or than it was, and has the job started again
    without its node; the primary node stays.

    Every `collection_rate` seconds each GPU is given the same small piece of work (`sonde probe`:
    some milliseconds, in a process that ends with it), whose duration is the metric `slow-gpu`, in
    seconds. docs/detect.md has the rule by which it is judged. Where a GPU's memory is so full that
    it cannot be probed, its clock while it is busy is compared instead, in runs of level 3 and
    above.

    `analysis_args`: a mapping of Judge's keywords (``{"slowdown": 1.5}``). SONDE_PROBE_DEVICES
    names what is probed in place of GPUs.
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
        """The node that is never excluded: the job's first."""
        return primary_node()

    def _watched(self) -> list[str]:
        return [_PROBED, _CLOCK, _BUSY]

    @staticmethod
    def collector_test(collector_args: Any) -> Optional[float]:
        """In the process of a GPU, which knows of this one alone: seconds, None: there is no
        room."""
        return probe(os.environ.get("SONDE_PROBE_DEVICE", "gpu:0"))

    def analyze_data(self, data: Data, analysis_args: Any) -> tuple[bool, list[str]]:  # type: ignore[override]
        """Whether anybody is slow who can be left out, and the hosts of all who are. Every point is
        judged once, however often it is given."""
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
