"""Natural order of names: site2 before site10."""

import re
from collections.abc import Iterable

# At most 18 digits at a time: Python refuses to parse integers of thousands of digits.
_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_key(name: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key that compares digits as numbers.

    >>> sorted(["site10", "site2", "10", "9", "a"], key=natural_key)
    ['9', '10', 'a', 'site2', 'site10']
    """
    # Text and number alternate, so that equal positions have equal types; the name breaks ties such as "1" and "01".
    parts = _NUMBER.split(name)
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts)), name


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in natural order.

    >>> natural_order(["b", "a10", "a9", "b"])
    ('a9', 'a10', 'b')
    """
    return tuple(sorted(set(names), key=natural_key))
