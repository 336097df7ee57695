"""One run of a sweep in this process: claim it, train it, and publish its result or the reason why there is none."""

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from crosstail.data import DomainDataset, load_source, protocols
from crosstail.sweeps.lease import Lease
from crosstail.sweeps.store import Store
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged
from crosstail.training.run_data import Inputs, load_inputs
from crosstail.training.spec import RunSpec

LINES = 8  # of an error message or traceback


@dataclass(frozen=True)
class Job:
    """A run, its role in the sweep, and its abandoned folders."""

    spec: RunSpec
    name: str = ""  # such as "trial 3"
    lost: tuple[str, ...] = ()
    keep: bool = False  # the probabilities of held-out samples
    after: str = ""  # key of the run that its first stage is on its own, if others need it too


class Outcome(NamedTuple):
    """How a job ended: done, failed, or busy if another process works on it; a sweep adds kept."""

    key: str
    how: str
    error: list[str] = []


class Stopped(Exception):
    """A stop was requested."""


def execute(store: Store, job: Job, stopped: Callable[[], bool] = lambda: False) -> Outcome:
    """Execute a job, unless it is done already or another process works on it."""
    key = job.spec.key
    try:
        lease = _claim(store, job)
    except OSError as error:
        return Outcome(key, "failed", _last_lines(error))
    if lease is None:
        if job.keep and store.has(key) and not store.keeps(key):
            with suppress(OSError, ValueError):  # the run is finished, whether or not they can be added
                train_run(job.spec, store.path / "runs" / key, inputs=inputs(job.spec))
        return Outcome(key, "done" if store.has(key) else "busy")

    def watch(what: str, done: int, total: int) -> None:
        if lease.lost:
            raise FileNotFoundError(lease.folder)
        if stopped():
            raise Stopped

    try:
        after = store.path / "runs" / job.after if job.after and store.has(job.after) else None
        how: dict[str, Any] = {"inputs": inputs(job.spec), "keep": job.keep, "after": after}
        train_run(job.spec, lease.folder, progress=watch, leased=True, **how)
        store.publish(lease, key)
        return Outcome(key, "done")
    except Stopped:
        raise
    except Exception as error:
        if not lease.folder.exists():
            return Outcome(key, "busy")  # another process has taken it over
        lines = _last_lines(error)
        with suppress(OSError):  # on a full disk the caller still gets the reason
            store.fail(lease, "error", lines)
        return Outcome(key, "failed", lines)
    finally:
        lease.give_back()


def give_up(store: Store, job: Job, kind: str, error: str) -> Outcome:
    """Record the failure of a job whose worker has died."""
    key = job.spec.key
    with suppress(OSError):
        lease = store.claim(job.spec, job.lost)
        if lease is not None:
            store.fail(lease, kind, [error])
    return Outcome(key, "done") if store.has(key) else Outcome(key, "failed", [error])


def inputs(spec: RunSpec) -> Inputs:
    """The data of a run; the last two are cached, because most runs of a sweep share their data."""
    return _load(data_key(spec))


def data_key(spec: RunSpec) -> bytes:
    """A key, as JSON, that runs on the same samples with the same split share."""
    ignored: dict[str, Any] = {
        "algorithm": "erm",
        "second_stage": None,
        "hparams": {},
        "width": None,
        "tuned_share": None,
    }
    seed = spec.seed if protocols.find(spec.protocol).seeded else 0
    return msgspec.json.encode(replace(spec, **ignored, seed=seed, steps=1, batch_size=1, evaluations=1))


@lru_cache(maxsize=2)
def _load(key: bytes) -> Inputs:
    spec = msgspec.json.decode(key, type=RunSpec)
    return load_inputs(spec, _source(msgspec.json.encode(replace(spec.undivided, seed=0, folds=None))))


@lru_cache(maxsize=1)
def _source(key: bytes) -> DomainDataset:
    """The samples before any split, which all unseen domains, seeds and folds share."""
    return load_source(msgspec.json.decode(key, type=RunSpec))


def _claim(store: Store, job: Job) -> Lease | None:
    lease = store.claim(job.spec, job.lost)
    if lease is None or _sound(RunFolder(lease.folder), job.spec):
        return lease
    lease.end()
    store.put_aside(lease.folder)
    return store.claim(job.spec)


def _sound(folder: RunFolder, spec: RunSpec) -> bool:
    """Whether a run can be resumed: records come before their checkpoint, so if its own is there, all are."""
    try:
        if not folder.holds(spec):
            return True
        folder.data(), folder.load("stage_one.pt")  # both can be read
        result, checkpoint = folder.result(), folder.load("checkpoint.pt")
        if result is not None:
            return result.spec == spec
        evaluated = {(record.stage, record.step) for record in folder.records()}
        return checkpoint is None or (checkpoint["stage"], checkpoint["step"]) in evaluated
    except (ValueError, TypeError, KeyError):
        return False


def _last_lines(error: Exception) -> list[str]:
    """The last lines of a message for users, or of the traceback."""
    if isinstance(error, OSError) and error.filename:
        return [f"{error.strerror}: {error.filename}"]
    if isinstance(error, ValueError | Diverged):
        return str(error).splitlines()[-LINES:]
    return "".join(traceback.format_exception(error)).splitlines()[-LINES:]
