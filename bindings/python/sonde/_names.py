"""Converts names and tags between the programs' form and the store's.

Stored names contain only letters, digits and _ . / : -; base/storable_name.h defines how other
characters are replaced. Tags are strings. If a program passed whole numbers as values of a tag, the
help of the metric says so, and get_data() returns whole numbers again.
"""

_WIDE = {0xFF01 + i: ord("!") + i for i in range(94)}
_CONTROLS = {0x2400 + i: i for i in range(32)}
_AS_WRITTEN = {**_WIDE, **_CONTROLS, 0x3000: ord(" "), 0x2421: 0x7F}

_WHOLE = "Values of the tag {} are whole numbers."


def as_written(name: str) -> str:
    """Returns the name that a program wrote, from the stored name."""
    return name.translate(_AS_WRITTEN)


def whole_numbers(key: str) -> str:
    """Returns the help text of a metric whose tag `key` has whole numbers."""
    return _WHOLE.format(key)
