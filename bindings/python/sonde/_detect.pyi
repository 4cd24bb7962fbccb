"""Finds members that are slower than the others; use the package `sonde`."""

from collections.abc import Mapping
from typing import NamedTuple, Optional, SupportsFloat, SupportsIndex, Union, final

class Verdict(NamedTuple):
    """A Judge's verdict on one member."""

    state: str
    peers: float
    own: float
    score: float
    by_peers: bool
    rounds: int

@final
class Judge:
    """Finds members that are slower than the others, or than their own best, in values that the
    program passes; the rule is that of `sonde detect`."""

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
        """Judges one round: a mapping of names to values. None, a value that is not finite, and a
        value that is not above 0 count as no value."""

    def leave(self, name: str, /) -> None:
        """Removes a member: the others continue without it, until it has a value again."""

    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts of the last round, by name."""
