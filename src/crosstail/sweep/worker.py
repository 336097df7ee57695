"""One run of a sweep in this process: claim it, train it, and publish its result or say why there is none."""

import json
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from crosstail import protocols
from crosstail.sweep.lease import Lease
from crosstail.sweep.store import Store
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged, Progress
from crosstail.training.run import Inputs
from crosstail.training.spec import RunSpec

LINES = 8  # of an error


@dataclass(frozen=True)
class Job:
    """A run, what it is in its sweep, the folders of it that were seen abandoned, and how good it must be to go on."""

    spec: RunSpec
    name: str = ""  # such as "trial 3"
    lost: tuple[str, ...] = ()
    at_least: Mapping[tuple[int, int], float] = field(default_factory=dict)  # by stage and step


class Outcome(NamedTuple):
    """How a job ended: done, failed, pruned, or busy if somebody else works on it."""

    key: str
    how: str
    error: list[str] = []


class Stopped(Exception):
    """Somebody has asked for an end."""


class Pruned(Exception):
    """Not good enough to go on."""


def execute(store: Store, job: Job, stopped: Callable[[], bool] = lambda: False) -> Outcome:
    """Do a job, unless it is done already or in other hands."""
    key = job.spec.key
    try:
        lease = _claim(store, job)
    except OSError as error:
        return Outcome(key, "failed", _last_lines(error))
    if lease is None:
        return Outcome(key, "done" if store.has(key) else "busy")
    try:
        protocols.run(job.spec, lease.folder, _watch(job, lease, stopped), inputs)
        store.publish(lease, key)
        return Outcome(key, "done")
    except Stopped:
        raise
    except Exception as error:
        if not lease.folder.exists():
            return Outcome(key, "busy")  # it was taken from us
        lines, pruned = _last_lines(error), isinstance(error, Pruned)
        with suppress(OSError):  # on a full disk the caller is told all the same
            store.fail(lease, "pruned" if pruned else "error", lines)
        return Outcome(key, "pruned" if pruned else "failed", lines)
    finally:
        lease.give_back()


def give_up(store: Store, job: Job, kind: str, error: str) -> Outcome:
    """Write down that a job failed whose worker is no more."""
    key = job.spec.key
    with suppress(OSError):
        lease = store.claim(job.spec, job.lost)
        if lease is not None:
            store.fail(lease, kind, [error])
    return Outcome(key, "done") if store.has(key) else Outcome(key, "failed", [error])


def inputs(spec: RunSpec, progress: Progress | None = None) -> Inputs:
    """The data of a run; those of the last ones are kept, for most runs of a sweep have the same."""
    trained: dict[str, Any] = {"algorithm": "erm", "decouple": False, "hparams": {}, "width": None, "seed": 0}
    data = replace(spec, **trained, steps=1, batch_size=1, evaluations=1)
    return _load(json.dumps(data.to_json()))


@lru_cache(maxsize=2)
def _load(data: str) -> Inputs:
    return protocols.load(RunSpec.from_json(json.loads(data)))


def _claim(store: Store, job: Job) -> Lease | None:
    lease = store.claim(job.spec, job.lost)
    if lease is None or _sound(RunFolder(lease.folder), job.spec):
        return lease
    lease.end()
    store.put_aside(lease.folder)
    return store.claim(job.spec)


def _sound(folder: RunFolder, spec: RunSpec) -> bool:
    """Whether a run can go on from what is in a folder.

    Records are in order and a checkpoint's own is written before it: where that one can be read, all before it can.
    """
    try:
        if not folder.holds(spec):
            return True
        result, checkpoint, _ = folder.result(), folder.load("checkpoint.pt"), folder.load("stage_one.pt")
        if result is not None:
            return RunSpec.from_json(result["spec"]) == spec
        evaluated = {(record["stage"], record["step"]) for record in folder.records()}
        return checkpoint is None or (checkpoint["stage"], checkpoint["step"]) in evaluated
    except (ValueError, TypeError, KeyError):
        return False


def _watch(job: Job, lease: Lease, stopped: Callable[[], bool]) -> Progress:
    """What a run reports to after every step: it ends a run that is no longer ours, not wanted, or not good enough."""

    def progress(what: str, done: int, total: int) -> None:
        if lease.lost:
            raise FileNotFoundError(lease.folder)
        if stopped():
            raise Stopped
        stage, step = int(what.removeprefix("stage ")), done - 1
        limit = job.at_least.get((stage, step))
        if limit is not None and (best := _best(lease.folder, stage)) < limit:
            raise Pruned(f"stage {stage}, step {step}: validation {100 * best:.1f} %, others {100 * limit:.1f} %")

    return progress


def _best(folder: Path, stage: int) -> float:
    """The best validation figure of a stage so far; the last evaluation was just now."""
    figures = [r["validation"]["pair_average"] for r in RunFolder(folder).records() if r["stage"] == stage]
    return max(figure or 0.0 for figure in figures)


def _last_lines(error: Exception) -> list[str]:
    """What to tell of an error: a message that was written for people, or where it happened."""
    if isinstance(error, ValueError | Diverged | Pruned):
        return str(error).splitlines()[-LINES:]
    return "".join(traceback.format_exception(error)).splitlines()[-LINES:]
