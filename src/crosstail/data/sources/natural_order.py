"""The order of names, and names as indices."""

import re
from collections.abc import Iterable

# At most 18 digits at a time: Python refuses to read numbers of thousands of digits.
_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_key(name: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key in which numbers count as numbers.

    >>> sorted(["site10", "site2", "10", "9", "a"], key=natural_key)
    ['9', '10', 'a', 'site2', 'site10']
    """
    # The parts alternate between text and number, so that equal positions compare; the name itself decides
    # between "1" and "01".
    parts = _NUMBER.split(name)
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts)), name


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in natural order.

    >>> natural_order(["b", "a10", "a9", "b"])
    ('a9', 'a10', 'b')
    """
    return tuple(sorted(set(names), key=natural_key))
