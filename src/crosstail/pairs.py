"""Pairs as numbers: the only place that says which one each has."""

from typing import Any, TypeVar

T = TypeVar("T", bound=Any)


def pair_number(y: T, domain: T, num_classes: int) -> T:
    """The pair of each label, numbered with domains outermost; of arrays as of tensors.

    >>> pair_number(1, 2, num_classes=10)
    21
    """
    return domain * num_classes + y
