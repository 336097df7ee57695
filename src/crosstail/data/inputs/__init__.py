"""Kinds of input: one file each, with a `KIND`; code that depends on what a sample is asks `kind_of(x)`."""

from functools import cache
from typing import Any

from crosstail import discovery
from crosstail.data.inputs._kind import InputKind

__all__ = ["InputKind", "kind_of", "kind_of_model"]

_ARRAY = InputKind(holds=lambda x: False)  # of results that other programs have made


def kind_of(x: Any) -> InputKind:
    """The kind that holds x; a ValueError says what is expected if there is none."""
    for kind in _kinds(tuple(__path__)):
        if kind.holds(x):
            return kind
    expected = " or ".join(kind.expects for kind in _kinds(tuple(__path__)) if kind.expects)
    raise ValueError(f"x is {x.dtype} {x.shape}, expected {expected}")


def kind_of_model(shape: tuple[int, ...]) -> InputKind:
    """The kind for which a model was trained that takes samples of this shape; one that opens files comes first."""
    found = [kind for kind in _kinds(tuple(__path__)) if kind.rank == len(shape)] or [_ARRAY]
    return max(found, key=lambda kind: kind.open is not None)


@cache
def _kinds(folders: tuple[str, ...]) -> tuple[InputKind, ...]:
    return tuple(discovery.find(__name__, name, "kind of input").KIND for name in discovery.names(__name__))
