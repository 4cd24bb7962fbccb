"""Stretches: records the job and dag of the cluster as consecutive spans, so that one query returns
the peaks of all of them.

A *stretch* is a period in which the keys that group peaks do not change: the job and dag, the set
of workers, and whether the monitor records. So every value belongs as a whole to one job and dag,
and to each worker as a whole or not at all::

    job, dag      0,0 ─────────────▶ 0,1 ──────────────────▶ 1,0
    worker 1               ├──────────────────────────┤
    recorded         ├─────────────────────────────────────────────────┤
    dask_stretch  ───┼─────┼─────────┼────────────────┼──────┼─────────┼───

Agents sample at instants that are whole multiples of `grain_ms`. A stretch without an instant has
no samples and is left out, so there is at most one stretch for each instant, however often clients
alternate. A stretch is opened after its first instant, so a killed scheduler leaves the last one in
the recording. The engine accepts about 10,000 spans in a query; so the starts of pages of PAGE
stretches are kept, 8 bytes each.
"""

from collections.abc import Sequence
from typing import Callable, Optional

SPAN = "dask_stretch"
PAGE = 8000
_MS = 1_000_000


class Stretches:
    """Calls `put` with start_ns, end_ns, job and dag of a stretch that ended before it was opened.
    Calls `opened` with start_ns, job and dag of an open stretch; it returns a function that ends
    the stretch."""

    def __init__(
        self, now_ns: int, grain_ms: int, put: Callable[[int, int, int, int], None], opened: Callable[[int, int, int], Callable[[int], None]]
    ) -> None:
        self.grain_ns = grain_ms * _MS
        self.put, self.opened = put, opened
        self.end: Optional[Callable[[int], None]] = None  # ends the open stretch
        self.job, self.dag = 0, 0
        self.since_ns = now_ns
        self.count = 0
        self.pages: list[int] = []  # the start of the first stretch of each page, ns

    def go(self, now_ns: int, job: int, dag: int) -> None:
        """Handles a change of the current job or dag."""
        self.cut(now_ns)
        self.job, self.dag = job, dag

    def cut(self, now_ns: int) -> None:
        """Ends a stretch and begins another one, after any other change."""
        if self.end is not None:
            self.end(now_ns)
            self.end = None
        elif self._first_instant() < now_ns:
            self._count()
            self.put(self.since_ns, now_ns, self.job, self.dag)
        self.since_ns = now_ns

    def look(self, now_ns: int) -> Optional[int]:
        """Opens the current stretch if an instant has passed in it. Returns the time of the next
        check in ns, or None if the stretch is open."""
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
        """Cuts a period into parts that the engine accepts, each as its first and last millisecond.
        A part ends where a stretch ends, because a query ignores points after its end."""
        return _parts(self.pages, first_ns, last_ns)


def questions_of(starts: Sequence[int], first_ns: int, last_ns: int) -> list[tuple[int, int]]:
    """Returns the parts of a recording whose stretches began at these times."""
    return _parts(starts[::PAGE], first_ns, last_ns)


def _parts(pages: Sequence[int], first_ns: int, last_ns: int) -> list[tuple[int, int]]:
    borders = [first_ns, *(page for page in pages if first_ns < page <= last_ns)]
    ends = [-(-border // _MS) - 1 for border in borders[1:]] + [-(-last_ns // _MS)]
    return [(begin // _MS, end) for begin, end in zip(borders, ends)]
