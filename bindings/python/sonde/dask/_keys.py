"""Converts keys of tasks to the text of one cell, and back.

Dask's keys are strings, numbers, bytes or tuples of these. A cell joins them with ``, ``. A string
is written as it is. It is written as a Python literal if it is ambiguous: it contains ``, ``,
begins with a quote or like a tuple, or is the text of a number. Bytes and tuples are Python
literals, too::

    inc-1                  a string
    ('sum-3f', 0, 1)       a tuple
    "('sum-3f', 0, 1)"     a string that looks like a tuple
    'a, b'                 a string with a comma

Other programs write such keys without quotes. The reader then guesses: a tuple if it looks like
one, else a string up to the next comma.
"""

import ast
import re
from collections.abc import Iterable
from typing import Any

_LITERAL = re.compile(r"""\(|[bB]?["']""")  # the beginning of a Python literal
_WORDS = {"True": True, "False": False, "None": None}


def _number(text: str) -> Any:
    """Returns the number of this text, or None."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def _plain(key: Any) -> Any:
    """Returns the key with Python's numbers in place of NumPy's, whose repr depends on NumPy's
    version."""
    if isinstance(key, tuple):
        return tuple(_plain(part) for part in key)
    if isinstance(key, (str, bytes, int, float, type(None))) and type(key).__module__ == "builtins":
        return key
    item = getattr(key, "item", None)
    return item() if callable(item) else str(key)


def _is_bare(key: str) -> bool:
    clear = key and key.isprintable() and ", " not in key
    return bool(clear and not _LITERAL.match(key) and key not in _WORDS and _number(key) is None)


def write(keys: Iterable[Any]) -> str:
    plain = map(_plain, keys)
    return ", ".join(key if isinstance(key, str) and _is_bare(key) else repr(key) for key in plain)


def _end_of_literal(cell: str, start: int) -> int:
    """Returns the position behind the tuple, string or bytes that begins here, or the cell's length
    if it has no end."""
    depth, quote, at = 0, "", start
    while at < len(cell):
        c = cell[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        at += 1
        if depth <= 0 and not quote and c in "'\")":
            return at
    return len(cell)


def _literal(cell: str, start: int) -> tuple[Any, int]:
    """Parses a Python literal. Returns it and its end, or an end of -1 if this is no literal."""
    end = _end_of_literal(cell, start)
    if end < len(cell) and not cell.startswith(", ", end):
        return None, -1
    try:
        return ast.literal_eval(cell[start:end]), end
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None, -1


def read(cell: str) -> list[Any]:
    keys: list[Any] = []
    at = 0
    while at < len(cell):
        key, end = _literal(cell, at) if _LITERAL.match(cell, at) else (None, -1)
        if end < 0:
            end = cell.find(", ", at)
            end = len(cell) if end < 0 else end
            text = cell[at:end]
            number = _number(text)
            key = _WORDS.get(text, text) if number is None else number
        keys.append(key)
        at = end + len(", ")
    return keys


_HASH = re.compile("[a-f0-9]{32}")


def prefix(key: Any) -> str:
    """Returns the prefix of a key as Dask counts it (dask.utils.key_split), without importing Dask:
    `inc` of `inc-0123abcd`, `sum` of `('sum-3f', 0)`."""
    while isinstance(key, tuple):
        key = key[0] if key else None
    text = key.decode(errors="replace") if isinstance(key, bytes) else key
    first, *words = text.split("-") if isinstance(text, str) else [""]
    found = first if first[:1].isalpha() else first.split(",")[0].strip("_'()\"")
    for word in words:
        if not word.isalpha() or (len(word) == 8 and word[0] in "abcdef"):
            break
        found += "-" + word
    if not first or not found:
        return "Other"
    if len(found) == 32 and _HASH.fullmatch(found):
        return "data"
    return (found.strip("<>").split() or ["Other"])[0].split(".")[-1] if found.startswith("<") else found
