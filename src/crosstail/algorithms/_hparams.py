"""Hyperparameters: default, search range and meaning, declared once, in the algorithm's file."""

import math
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import numpy as np

from crosstail import discovery


class Uniform:
    """Uniform between two numbers."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def draw(self, generator: np.random.Generator) -> float:
        return float(generator.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"uniform {self.low:g} to {self.high:g}"


class LogUniform(Uniform):
    """Uniform between two numbers on a logarithmic scale."""

    def draw(self, generator: np.random.Generator) -> float:
        return math.exp(generator.uniform(math.log(self.low), math.log(self.high)))

    def __str__(self) -> str:
        return f"log-uniform {self.low:.2g} to {self.high:.2g}"


class Integer(Uniform):
    """An integer: uniform, rounded down, as in the code of the BoDA authors."""

    def draw(self, generator: np.random.Generator) -> int:
        return int(super().draw(generator))

    def __str__(self) -> str:
        return f"{super().__str__()}, rounded down"


class LogInteger(Integer, LogUniform):
    """An integer: log-uniform, rounded down, as in DomainBed."""


class Choice:
    """One of several values, with equal probability."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def draw(self, generator: np.random.Generator) -> Any:
        return self.values[int(generator.integers(len(self.values)))]

    def __str__(self) -> str:
        return "one of " + ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in self.values)


class OneMinus:
    """1 minus a draw from another distribution, for numbers just below 1."""

    def __init__(self, distribution: Uniform) -> None:
        self.distribution = distribution

    def draw(self, generator: np.random.Generator) -> float:
        return 1 - float(self.distribution.draw(generator))

    def __str__(self) -> str:
        return f"1 - {self.distribution}"


Distribution = Uniform | Choice | OneMinus
"""What a random search draws from."""

# Differs from the paper, which uses them for its ResNets: here for all pretrained networks that are finetuned.
FINETUNED_RATE = 5e-5, LogUniform(1e-5, 10**-3.5)
FINETUNED_DECAY = 0.0, LogUniform(1e-6, 1e-2)


@dataclass(frozen=True)
class Limits:
    """Values that make sense.

    >>> str(Limits(above=0)), str(Limits(above=0, below=1)), str(Limits(at_least=0, at_most=1))
    ('a number above 0', 'a number between 0 and 1', '0 to 1')
    """

    above: float = -math.inf
    below: float = math.inf
    at_least: float = -math.inf
    at_most: float = math.inf

    def admit(self, value: float) -> bool:
        within = self.above < value < self.below and self.at_least <= value <= self.at_most
        return within or self == Limits()

    def __str__(self) -> str:
        if self.at_least > -math.inf:
            return f"{self.at_least:g} " + ("or more" if self.at_most == math.inf else f"to {self.at_most:g}")
        if math.inf in (-self.above, self.below):
            return f"a number above {self.above:g}" if self.below == math.inf else f"a number below {self.below:g}"
        return f"a number between {self.above:g} and {self.below:g}"


def hp(
    default: Any,
    search: Distribution | None,
    meaning: str,
    finetune: tuple[Any, Distribution] | None = None,
    **limits: float,
) -> Any:
    """Declare a hyperparameter; without a search range it keeps its default in every trial.

    `finetune` is another default and search range, used when a pretrained network is finetuned. Values outside the
    `limits` (above, below, at_least, at_most) make no sense, and are refused.
    """
    about = {"search": search, "meaning": meaning, "finetune": finetune, "limits": Limits(**limits)}
    return field(default=default, metadata=about)


def when(default: float, search: Distribution | None, meaning: str) -> Any:
    """Declare when a phase of the training begins, for `first_step`: below 1 a share of the steps, else a step."""
    declared = hp(default, search, f"{meaning}: below 1 a share of the steps, else a step", at_least=0)
    return field(default=default, metadata={**declared.metadata, "begins": True})


def address(declared: "Field[Any]") -> str:
    """The name of a hyperparameter: NAME, or PART.NAME if several parts of a combination have one of that name."""
    return declared.name.replace("__", ".")


def values(hparams: Any) -> dict[str, Any]:
    """Hyperparameters by name."""
    return {address(f): getattr(hparams, f.name) for f in fields(hparams)}


def ranges(hparams: type, finetune: bool = False, on: str | None = None) -> dict[str, Distribution]:
    """Search ranges by name, on a benchmark if it has its own."""
    found = {address(f): f.metadata["search"] for f in fields(hparams) if f.metadata["search"] is not None}
    return found | {name: search for name, (_, search) in _others(hparams, finetune, on).items()}


def draw(hparams: type, trial: int, seed: int = 0, finetune: bool = False, on: str | None = None) -> dict[str, Any]:
    """Hyperparameters of a trial: the defaults for trial 0, else one random draw, the same on every machine."""
    if trial == 0:
        return {name: default for name, (default, _) in _others(hparams, finetune, on).items()}
    generator = np.random.default_rng(np.random.SeedSequence([seed, trial]))
    return {name: search.draw(generator) for name, search in ranges(hparams, finetune, on).items()}


def _others(hparams: type, finetune: bool, on: str | None) -> dict[str, tuple[Any, Distribution]]:
    """Other defaults and search ranges: those for finetuning, and those for a benchmark."""
    found = {address(f): f.metadata["finetune"] for f in fields(hparams) if finetune and f.metadata["finetune"]}
    return found | {address(f): f.metadata["on"][on] for f in fields(hparams) if on in f.metadata.get("on", {})}


def check_declared(name: str, hparams: type) -> None:
    """Refuse a class of hyperparameters in which one is not declared by `hp`."""
    for f in fields(hparams):
        if "meaning" not in f.metadata:
            raise ValueError(f"{name}: the hyperparameter {f.name!r} is not declared by hp(default, search, meaning)")


def parse(hparams: type, words: dict[str, Any]) -> Any:
    """Hyperparameters from names and values, which may be strings from the command line."""
    known, short = {address(f): f for f in fields(hparams)}, getattr(hparams, "_short", {})
    words = {short.get(name, name): value for name, value in words.items()}
    unknown = sorted(set(words) - set(known))
    if unknown:
        near = discovery.nearest(unknown[0], list(known))
        hint = f" (did you mean {near!r}?)" if near else ""
        raise ValueError(f"unknown hyperparameter {unknown[0]!r}: there are {', '.join(known)}{hint}")
    return hparams(**{known[name].name: _typed(known[name], value) for name, value in words.items()})


def _typed(declared: "Field[Any]", value: Any) -> Any:
    """Convert to the type of the default; a string must be one of the choices of its search."""
    assert declared.default is not MISSING
    search = declared.metadata["search"]
    if isinstance(declared.default, str):
        if value not in search.values:
            raise ValueError(f"hyperparameter {address(declared)} is {value!r}, expected {search}")
        return value
    kind, limits = type(declared.default), declared.metadata["limits"]
    expected = kind.__name__
    try:
        if isinstance(value, str):
            value = {"true": True, "false": False}[value.lower()] if kind is bool else kind(value)
        if type(value) is kind or (type(value) is int and kind is float):
            if limits.admit(value):
                return kind(value)
            expected = limits
    except (ValueError, KeyError):
        pass
    raise ValueError(f"hyperparameter {address(declared)} is {value!r}, expected {expected}")
