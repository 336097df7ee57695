"""What a log is: hyperparameters once, and numbers with a name and a step."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import msgspec

from crosstail.training.result import Evaluation, RunResult
from crosstail.training.spec import RunSpec

Hparams = dict[str, bool | int | float | str]


class Point(NamedTuple):
    """A value at a step."""

    name: str
    step: int
    value: float


class Log(Protocol):
    """What the `open_log(out)` of a file `NAME.py` in this package returns: the log of the run in a folder.

    Opening it changes nothing. It may already contain part of the run, from before an interruption.
    """

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        """Add whatever the log does not contain yet."""

    def close(self) -> None: ...


def hyperparameters(spec: RunSpec) -> Hparams:
    """The fields of a spec and the hyperparameters of its algorithm as scalars.

    >>> found = hyperparameters(RunSpec(dataset="digits", labels=("uniform",), hparams={"lr": 0.1}))
    >>> found["algorithm"], found["labels"], found["hp/lr"]
    ('boda', "('uniform',)", 0.1)
    """
    words: dict[str, Any] = msgspec.to_builtins(spec)
    words |= {f"hp/{name}": value for name, value in words.pop("hparams").items()}
    return {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in words.items() if v is not None}


def points(records: list[Evaluation], result: RunResult | None) -> list[Point]:
    """The loss terms and validation metrics of every evaluation, and the final metrics; None is left out.

    The curve on the test set is not logged: watching it invites stopping at its peak.
    """
    found = []
    for record in records:
        logged = {"loss": record.losses, "validation": record.validation, "seconds": record.seconds}
        if record.averaged:
            logged["averaged"] = {"validation": record.averaged.validation}
        found += [Point(name, record.step, value) for name, value in _numbers(f"stage_{record.stage}", logged)]
    if result is not None:
        final = {name: getattr(result, name) for name in ("validation", "test", "transferability", "seconds")}
        found += [Point(name, result.selected_step, value) for name, value in _numbers("final", final)]
    return found


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The scalars in nested values, by their paths."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict):
        for word, inner in plain.items():
            yield from _numbers(f"{name}/{word}", inner)
    elif isinstance(plain, int | float):
        yield name, float(plain)
