"""Who is slower than the others; use the package `sonde`."""

from collections.abc import Mapping
from typing import NamedTuple, Optional, SupportsFloat, SupportsIndex, Union, final

class Verdict(NamedTuple):
    """What a Judge says of one member."""

    state: str
    peers: float
    own: float
    score: float
    by_peers: bool
    rounds: int

@final
class Judge:
    """Who is slower than the others, and than its own best: as `sonde detect`, of values that the
    program has itself."""

    def __new__(
        cls,
        *,
        window: int = ...,
        persistence: int = ...,
        slowdown: float = ...,
        score: float = ...,
        noise_floor: float = ...,
        less_is_worse: bool = ...,
        not_peers: bool = ...,
        not_own: bool = ...,
    ) -> Judge: ...
    def round(self, values: Mapping[str, Union[SupportsFloat, SupportsIndex, None]], /) -> None:
        """One round: a mapping of names to values. What is None, not finite or not above 0 counts
        as none."""

    def leave(self, name: str, /) -> None:
        """A member is there no more: the others go on without it, until it gives a value again."""

    def verdicts(self) -> dict[str, Verdict]:
        """Of the last round: name to Verdict."""
