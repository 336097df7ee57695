"""Natural order of names: site2 before site10."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

# At most 18 digits at a time: Python refuses to parse integers of thousands of digits.
_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_key(name: str) -> tuple[tuple[str | int, ...], str]:
    """A sort key that compares digits as numbers."""
    # Text and number alternate, so that equal positions have equal types; the name breaks ties such as "1" and "01".
    return tuple(int(part) if i % 2 else part for i, part in enumerate(_NUMBER.split(name))), name


def natural_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in natural order.

    >>> natural_order(["site10", "site2", "10", "9", "a", "9"])
    ('9', '10', 'a', 'site2', 'site10')
    """
    return tuple(sorted(set(names), key=natural_key))


def numbered_names(texts: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The index of each text among the names that occur, and these names in natural order."""
    names = natural_order(texts)
    index = {name: i for i, name in enumerate(names)}
    return np.array([index[text] for text in texts], np.int64), names
