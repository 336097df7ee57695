"""Logs of a run in other formats, one file each with a `LOG`: they follow the records that the run writes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from crosstail import discovery
from crosstail.progress import Progress
from crosstail.training.devices import is_main_process
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve
from crosstail.training.result import Evaluation, RunResult
from crosstail.training.spec import RunSpec

Hparams = dict[str, bool | int | float | str]


class Point(NamedTuple):
    """A value at a step."""

    name: str
    step: int
    value: float


class Log(Protocol):
    """The log of the run in a folder: `LOG(out)` of the file `NAME.py` in this package.

    Opening it changes nothing. It may already contain part of the run, from before an interruption.
    """

    def write(self, hparams: Hparams, points: list[Point], finished: bool) -> None:
        """Add whatever the log does not contain yet."""

    def close(self) -> None:
        """Close what is open; by default nothing is."""


@contextmanager
def logged(kind: str, spec: RunSpec, out: Path, progress: Progress) -> Iterator[Progress]:
    """Give a progress function for a run inside this context; evaluations are logged soon after they are recorded.

    A log that cannot be written does not stop the run: it is retried after the next evaluation, and at the end.
    """
    log: Log = discovery.find("crosstail.training.logs", kind, "log").LOG(out)
    hparams = hyperparameters(resolve(spec))

    def update() -> None:
        folder = RunFolder(out)
        result = folder.result()
        log.write(hparams, points(folder.records(), result), result is not None)

    before = RunFolder(out).recorded()  # a resumed run may drop and repeat some of these records

    def report(what: str, done: int, total: int) -> None:
        nonlocal before
        progress(what, done, total)
        now = RunFolder(out).recorded()
        if now != before and is_main_process():
            before = now
            with suppress(Exception):
                update()

    with closing(log):
        yield report
        if is_main_process():
            try:
                update()
            except Exception as error:
                raise OSError(
                    f"the run is finished, but its {kind} log is not: {error}. Repeat the command to complete it"
                ) from error


def hyperparameters(spec: RunSpec) -> Hparams:
    """The fields of a spec and the hyperparameters of its algorithm as scalars."""
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
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict):
        for word, inner in plain.items():
            yield from _numbers(f"{name}/{word}", inner)
    elif isinstance(plain, int | float):
        yield name, float(plain)
