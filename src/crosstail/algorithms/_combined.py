"""Algorithms combined by name, such as `bsoftmax+coral`, and presets such as `boda@reference`.

A combination is one class with all parts as bases: where a part adds a term, its `losses` calls the next part's
through `super()`. Each part reads its own hyperparameters, even if another has one of the same name.
"""

import math
from collections.abc import Callable
from dataclasses import Field, field, fields, make_dataclass
from functools import wraps
from inspect import isfunction
from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm, Preset
from crosstail.algorithms._alignment import Alignment
from crosstail.algorithms.erm import ERM

Parts = dict[str, type[Algorithm]]
_BETWEEN = "\n\nCombined with "


def combine(name: str, parts: Parts) -> type[Algorithm]:
    """One class from several algorithms; the order of the parts does not matter."""
    _check(name, parts)
    # A term calls the next part, so it comes first; what replaces the loss, and calls none, comes last.
    order = sorted(parts, key=lambda part: (_replaces_loss(parts[part]), _replaces_step(parts[part]), part))
    kinds = [parts[part] for part in order]
    members = {
        "Hparams": _merged(parts, order),
        "hparams": _OWN_HPARAMS,
        "__doc__": _BETWEEN.join(kind.__doc__ for kind in kinds if kind.__doc__),
        "passes": math.prod(kind.passes for kind in kinds),
        "linear_head": all(kind.linear_head for kind in kinds),
        "min_domains": max(kind.min_domains for kind in kinds),
        "class_balanced": any(kind.class_balanced for kind in kinds),
        "unshared": next(filter(None, (kind.unshared for kind in kinds)), ""),
        "differs": tuple(dict.fromkeys(words for kind in kinds for words in kind.differs)),
        "presets": {},
    }
    return type("+".join(kind.__name__ for kind in kinds), tuple(_scoped(p, parts[p]) for p in order), members)


def docstrings(algorithm: type[Algorithm]) -> list[str]:
    """The docstring of an algorithm, or one for each of its parts."""
    return (algorithm.__doc__ or "").split(_BETWEEN)


def find_preset(name: str, algorithm: type[Algorithm], chosen: str) -> Preset:
    """The preset of an algorithm by name."""
    known = algorithm.presets
    if chosen not in known:
        hint = discovery.suggestion(chosen, list(known)) if known else "it has none."
        raise ValueError(f"{name} has no preset {chosen!r}: {hint}")
    return known[chosen]


def with_preset(preset: Preset, parts: Parts) -> Parts:
    """The algorithm of a preset, which comes first, and those that belong to it, with its defaults."""
    changed: Parts = {}
    for part, kind in parts.items():
        about: dict[str, Any] = {"__doc__": ""}  # what the preset is says it for all of them
        if not changed:
            kept = (words for words in kind.differs if words not in preset.undoes)
            about = {"__doc__": preset.what, "differs": (*kept, *preset.differs)}
        own = {f.name: f for f in fields(kind.Hparams)}
        defaults = {n: value for n, value in preset.hparams.items() if n in own}
        on = {n: {data: found[n] for data, found in preset.on.items() if n in found} for n in own}
        changed[part] = type(kind.__name__, (kind,), {"Hparams": _declared(own, defaults, on=on), **about})
    return changed


def _check(name: str, parts: Parts) -> None:
    for part, kind in parts.items():
        if kind.alone:
            raise ValueError(f"{name}: {kind.alone}")
        if kind is ERM:
            raise ValueError(f"{name}: {part} adds nothing to another algorithm")
        if kind.alias_of:
            raise ValueError(f"{name}: {part} stands for {kind.alias_of}; add its second stage instead")
    for what, replaces in (("the classification loss", _replaces_loss), ("the training step", _replaces_step)):
        both = [part for part, kind in parts.items() if replaces(kind)]
        if len(both) > 1:
            raise ValueError(f"{name}: {' and '.join(both)} both replace {what}")
    for single, kind in parts.items():
        compares = [part for part in parts if parts[part].min_domains > 1 and part != single]
        if kind.one_domain_at_a_time and compares:
            raise ValueError(f"{name}: {single} trains on one domain at a time, and {compares[0]} compares domains")
        other = [part for part in parts if not parts[part].linear_head]
        if kind.reads_weights and other:
            raise ValueError(f"{name}: {single} needs a classifier linear in the features, and {other[0]} has another")
    aligned = [part for part, kind in parts.items() if issubclass(kind, Alignment)]
    if len(aligned) > 1:
        raise ValueError(f"{name}: {' and '.join(aligned)} are forms of one alignment term")


def _replaces_loss(kind: type[Algorithm]) -> bool:
    return kind.losses is not ERM.losses and not kind.adds_term


def _replaces_step(kind: type[Algorithm]) -> bool:
    return kind.update is not ERM.update


def _merged(parts: Parts, order: list[str]) -> type:
    """The hyperparameters of all parts; one that several parts declare becomes PART.NAME for each of them."""
    shared = {f.name for f in fields(Algorithm.Hparams)}
    names = [f.name for part in order for f in fields(parts[part].Hparams)]
    found: dict[str, Field[Any]] = {}
    short: dict[str, str] = {}
    for part in order:
        for f in fields(parts[part].Hparams):
            several = names.count(f.name) > 1 and f.name not in shared
            found[f"{part}.{f.name}" if several else f.name] = f
            if not several and f.name not in shared:
                short[f"{part}.{f.name}"] = f.name
    return _declared(found, {}, short)


def _declared(
    declared: "dict[str, Field[Any]]",
    changed: dict[str, Any],
    short: dict[str, str] | None = None,
    on: dict[str, dict[str, Any]] | None = None,
) -> type:
    """A class of hyperparameters with the declared fields, some with another default or range, or others `on` a set.

    `short` has the names of those that may be called PART.NAME as well.
    """
    rows = []
    for name, old in declared.items():
        default, metadata = changed.get(name, old.default), {**old.metadata, **({"on": on[name]} if on else {})}
        if isinstance(default, tuple):
            default, search = default
            metadata["search"] = search
        rows.append((name.replace(".", "__"), old.type, field(default=default, metadata=metadata)))
    return make_dataclass("Hparams", rows, frozen=True, kw_only=True, namespace={"_short": short or {}})


class _View:
    """The hyperparameters as one part sees them: its own NAME where several parts have one."""

    def __init__(self, whole: Any, part: str) -> None:
        self.whole, self.part = whole, part

    def __getattr__(self, name: str) -> Any:
        own = f"{self.part}__{name}"
        return getattr(self.whole, own if hasattr(self.whole, own) else name)


def _scoped(part: str, kind: type[Algorithm]) -> type[Algorithm]:
    """The algorithm with methods that set whose hyperparameters `self.hparams` are while they run."""

    def scoped(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Algorithm, *args: Any, **kwargs: Any) -> Any:
            scope = self.__dict__.setdefault("_scope", [])
            scope.append(part)
            try:
                return method(self, *args, **kwargs)
            finally:
                scope.pop()

        return call

    bases = [base for base in kind.__mro__ if base not in ERM.__mro__]
    own = {name: getattr(kind, name) for base in bases for name, value in vars(base).items() if isfunction(value)}
    return type(kind.__name__, (kind,), {name: scoped(method) for name, method in own.items()})


def _get(self: Any) -> Any:
    scope = self.__dict__.get("_scope")
    return _View(self._whole, scope[-1]) if scope else self._whole


def _set(self: Any, hparams: Any) -> None:
    self._whole = hparams


_OWN_HPARAMS = property(_get, _set)
