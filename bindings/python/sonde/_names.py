"""Names and tags as programs write them, and as they are stored.

The store's names hold letters, digits and _ . / : - alone; base/storable_name.h says which sign
stands for another one. Tags are texts: that a program gave whole numbers stands in the metric's
help, so that get_data() can answer with whole numbers.
"""

_WIDE = {0xFF01 + i: ord("!") + i for i in range(94)}
_CONTROLS = {0x2400 + i: i for i in range(32)}
_AS_WRITTEN = {**_WIDE, **_CONTROLS, 0x3000: ord(" "), 0x2421: 0x7F}

_WHOLE = "Values of the tag {} are whole numbers."


def as_written(name: str) -> str:
    """The name that a program wrote for this stored one."""
    return name.translate(_AS_WRITTEN)


def whole_numbers(key: str) -> str:
    """The help of a metric whose tag `key` has whole numbers."""
    return _WHOLE.format(key)
