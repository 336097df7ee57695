"""What a log is: hyperparameters once, and numbers with a name and a step."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from crosstail import algorithms
from crosstail.training.spec import RunSpec

Hparams = dict[str, bool | int | float | str]


class Point(NamedTuple):
    """A number at a step."""

    name: str
    step: int
    value: float


class Log(Protocol):
    """A file `NAME.py` of this package has an `open_log(out)` that returns the log of the run in a folder.

    Opening it changes nothing. It may hold part of the run already, from before an interruption.
    """

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        """Add whatever of all this it does not hold yet."""
        ...

    def close(self) -> None:
        """End writing."""
        ...


def hyperparameters(spec: RunSpec) -> Hparams:
    """The words of a spec, and every hyperparameter of its algorithm, also those that have their default.

    >>> found = hyperparameters(RunSpec(dataset="digits", labels=("uniform",), hparams={"lr": 0.1}))
    >>> found["algorithm"], found["labels"], found["hp/lr"], found["hp/weight_decay"]
    ('erm', "['uniform']", 0.1, 0.0)
    """
    words = spec.to_json()
    typed = algorithms.parse(algorithms.find(spec.algorithm).Hparams, words.pop("hparams"))
    words |= {f"hp/{name}": value for name, value in vars(typed).items()}
    return {k: v if isinstance(v, bool | int | float | str) else str(v) for k, v in words.items() if v is not None}


def points(records: list[dict[str, Any]], result: dict[str, Any] | None) -> list[Point]:
    """The loss terms and validation figures of every evaluation, and the final figures; None is left out.

    How the test figures came about is not shown: whoever sees them rise might stop there.
    """
    found = []
    for record in records:
        figures = {"loss": record["losses"], "validation": record["validation"], "seconds": record["seconds"]}
        if "averaged" in record:
            figures["averaged"] = {"validation": record["averaged"]["validation"]}
        found += [Point(name, record["step"], value) for name, value in _numbers(f"stage_{record['stage']}", figures)]
    if result is not None:
        final = {name: result[name] for name in ("validation", "test", "transferability", "seconds")}
        found += [Point(name, result["selected_step"], value) for name, value in _numbers("final", final)]
    return found


def _numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers in nested dicts, by their paths; tables are none."""
    if isinstance(value, dict):
        for word, inner in value.items():
            yield from _numbers(f"{name}/{word}", inner)
    elif isinstance(value, int | float):
        yield name, float(value)
