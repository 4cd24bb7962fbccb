"""When the cluster was at which job and dag, said as spans, so that one question gives the peaks of
all of them.

A *stretch* is a time in which nothing changed that peaks are told apart by: job and dag, which
workers there are, whether it is recorded. Whatever was measured in one belongs as a whole to one
job and dag, and to each worker as a whole or not at all::

    job, dag      0,0 ─────────────▶ 0,1 ──────────────────▶ 1,0
    worker 1               ├──────────────────────────┤
    recorded         ├─────────────────────────────────────────────────┤
    dask_stretch  ───┼─────┼─────────┼────────────────┼──────┼─────────┼───

Samples are taken at instants: whole multiples of `grain_ms`. A stretch without an instant has no
samples and is left out, so there is at most one for each instant, however often clients take turns.
A stretch is opened once an instant is behind it, so a killed scheduler leaves the last one in the
recording. The engine answers about 10,000 spans at once; pages of PAGE stretches are remembered by
where they begin, 8 bytes each.
"""

from collections.abc import Sequence
from typing import Callable, Optional

SPAN = "dask_stretch"
PAGE = 8000
_MS = 1_000_000


class Stretches:
    """`put` is told of each stretch that is over: start_ns, end_ns, job, dag. `opened` is told of
    one that goes on: start_ns, job, dag; it returns a function that ends it."""

    def __init__(
        self, now_ns: int, grain_ms: int, put: Callable[[int, int, int, int], None], opened: Callable[[int, int, int], Callable[[int], None]]
    ) -> None:
        self.grain_ns = grain_ms * _MS
        self.put, self.opened = put, opened
        self.end: Optional[Callable[[int], None]] = None  # of the stretch that is open
        self.job, self.dag = 0, 0
        self.since_ns = now_ns
        self.count = 0
        self.pages: list[int] = []  # where the first stretch of each begins, ns

    def go(self, now_ns: int, job: int, dag: int) -> None:
        """The cluster is at another job or dag."""
        self.cut(now_ns)
        self.job, self.dag = job, dag

    def cut(self, now_ns: int) -> None:
        """Something else has changed: a stretch ends and another one begins."""
        if self.end is not None:
            self.end(now_ns)
            self.end = None
        elif self._first_instant() < now_ns:
            self._count()
            self.put(self.since_ns, now_ns, self.job, self.dag)
        self.since_ns = now_ns

    def look(self, now_ns: int) -> Optional[int]:
        """Opens the stretch that goes on if an instant is behind it. When to look again, ns; None:
        it is open."""
        if self.end is None:
            first_ns = self._first_instant()
            if first_ns >= now_ns:
                return first_ns
            self._count()
            self.end = self.opened(self.since_ns, self.job, self.dag)
        return None

    def _first_instant(self) -> int:
        return -(-self.since_ns // self.grain_ns) * self.grain_ns

    def _count(self) -> None:
        if self.count % PAGE == 0:
            self.pages.append(self.since_ns)
        self.count += 1

    def questions(self, first_ns: int, last_ns: int) -> list[tuple[int, int]]:
        """The time in parts that hold no more than the engine takes: first and last millisecond of
        each. A part ends where a stretch does, as a question cuts off what it does not hold."""
        return _parts(self.pages, first_ns, last_ns)


def questions_of(starts: Sequence[int], first_ns: int, last_ns: int) -> list[tuple[int, int]]:
    """The same of a recording, whose stretches began at these times."""
    return _parts(starts[::PAGE], first_ns, last_ns)


def _parts(pages: Sequence[int], first_ns: int, last_ns: int) -> list[tuple[int, int]]:
    borders = [first_ns, *(page for page in pages if first_ns < page <= last_ns)]
    ends = [-(-border // _MS) - 1 for border in borders[1:]] + [-(-last_ns // _MS)]
    return [(begin // _MS, end) for begin, end in zip(borders, ends)]
