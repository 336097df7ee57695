"""A sweep's folder, which many processes on many machines may use at once.

    plans/KEY.json              what was asked for
    data.json                   checksum of the data that the sweep was started on
    runs/KEY/                   a finished run
    work/KEY.TOKEN/             an unfinished run: its checkpoint, its holder's lease, failure.json if it failed
    damaged/KEY.TOKEN/          what could not be read
    index.jsonl                 the accuracies of the finished runs, cached
    selected.json               the chosen hyperparameters

A process takes over a run by moving its folder: of several that try, the file system lets one succeed, also over a
network, and the previous holder notices that its folder is gone.
"""

import shutil
import time
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from crosstail.storage import move, names, read_json, write_json
from crosstail.sweeps.index import Index, Summary
from crosstail.sweeps.lease import Lease, is_dead, sign, sign_of
from crosstail.sweeps.plan import Plan
from crosstail.training.data_facts import DataFacts
from crosstail.training.result import PROBABILITIES
from crosstail.training.spec import RunSpec, differences

FAILURE, DATA = "failure.json", "data.json"
FRESH = ".0"
PATIENCE = 60.0  # seconds without a sign of life, by the clock of the process that waits


class Failure(msgspec.Struct, frozen=True):
    """Why a run has no result: an error, a time limit, or a worker that died."""

    kind: str
    error: list[str]  # its last lines
    attempts: int


class Store:
    """The plans, results and unfinished runs of a sweep."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path = path
        self.patience = patience
        self._index = Index(path)
        self._seen: dict[str, tuple[bytes, float]] = {}

    @classmethod
    def existing(cls, path: Path) -> "Store":
        if not (path / "plans").is_dir():
            raise ValueError(f"{path} is not a sweep: crosstail sweep DATA --out {path} starts one")
        return cls(path)

    def check_plan(self, plan: Plan) -> None:
        """Refuse a plan of another sweep: a folder holds one, which may grow by methods, trials and seeds."""
        wanted = _shared(plan)
        for found in map(_shared, self.plans()):
            if changed := [name for name, value in wanted.items() if found[name] != value]:
                which = f"{self.path} holds another sweep: its {differences(changed, found, wanted)}"
                raise ValueError(f"{which}. Choose another --out, or remove the folder")

    def add(self, plan: Plan, facts: DataFacts | None = None) -> None:
        """Record a plan, and the data that a sweep is started on."""
        self.check_plan(plan)
        for file, content in ((self.path / "plans" / f"{plan.key}.json", plan), (self.path / DATA, facts)):
            if content is not None and not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                write_json(file, content)

    def plans(self) -> list[Plan]:
        found = []
        for file in sorted((self.path / "plans").glob("*.json")):
            try:
                found.append(read_json(file, Plan))
                if not found[-1].drawn:
                    raise ValueError(f"{file}: `drawn` has no trials")
            except ValueError as error:
                raise ValueError(f"{error}. Remove the file and give the same sweep command again") from None
        return found

    def check_data(self, dataset: str, facts: DataFacts) -> None:
        """Refuse to continue a sweep on changed data."""
        file = self.path / DATA
        try:
            before = read_json(file, DataFacts) if file.exists() else facts
        except ValueError as error:
            raise ValueError(f"{error}. If {dataset} has not changed, remove the file") from None
        before.check_unchanged(facts, dataset, self.path)

    def keeps(self, key: str) -> bool:
        """Whether a finished run has the probabilities of its held-out samples."""
        return (self.path / "runs" / key / PROBABILITIES).exists()

    def has(self, key: str) -> bool:
        return (self.path / "runs" / key).exists()

    def results(self) -> dict[str, Summary]:
        """The accuracies of the finished runs, by key."""
        return self._index.read()

    def tidy(self) -> None:
        """Set aside finished runs whose result cannot be read; remove what killed processes have left."""
        for key in self.results():
            self._unsign(key)
        for key in self._index.damaged:
            self.put_aside(self.path / "runs" / key)
        for hidden in (self.path / "work").glob(".*"):
            with suppress(FileNotFoundError):  # its process has just moved it
                if all(is_dead(file.read_bytes()) for file in hidden.glob("lease.*")):
                    shutil.rmtree(hidden, ignore_errors=True)
        for key, folders in self.unfinished().items():
            if self.has(key):
                for folder in filter(self.abandoned, folders):
                    self._discard(folder)

    def unfinished(self) -> dict[str, list[Path]]:
        """The folders of runs that are not finished, by key; several for one run only after a crash."""
        found: dict[str, list[Path]] = {}
        for name in names(self.path / "work"):
            if not name.startswith("."):
                found.setdefault(name.partition(".")[0], []).append(self.path / "work" / name)
        return found

    def failures(self) -> dict[str, Failure]:
        """The runs that failed, by key, including those that are being tried again."""
        pairs = [(key, folder) for key, folders in self.unfinished().items() for folder in folders]
        return {key: failure for key, folder in pairs if (failure := read_failure(folder))}

    def abandoned(self, folder: Path) -> bool:
        """Whether no process works in a folder: released, its holder dead, or no sign of life for too long."""
        try:
            text = sign_of(folder).read_bytes()
        except FileNotFoundError:
            return not folder.name.endswith(FRESH)  # a new folder has its lease from the start: it was just moved
        now = time.monotonic()
        last, since = self._seen.get(folder.name, (b"", now))
        if text != last:
            since = now
        self._seen[folder.name] = text, since
        return is_dead(text) or now - since > self.patience

    def claim(self, spec: RunSpec, lost: Container[str] = ()) -> Lease | None:
        """A lease to work on a run, or None if it is finished or another process works on it.

        `lost` names folders that another process has found abandoned.
        """
        key, own = spec.key, token_hex(4)
        if self.has(key):
            self._unsign(key)
            return None
        folders = self.unfinished().get(key)
        if folders is None:
            folders = self._begun(key)
        elif not all(folder.name in lost or self.abandoned(folder) for folder in folders):
            return None
        if not folders:
            return None
        first, *others = sorted(folders, key=lambda folder: not (folder / "spec.json").exists())
        place = self.path / "work" / f"{key}.{own}"
        try:
            sign(first, own)
        except FileNotFoundError:
            return None
        if not move(first, place):
            return None
        lease = Lease(place, beat=self.patience / 20)
        for other in others:
            self._discard(other)
        if self.has(key):  # finished by another process in the meantime
            lease.end()
            self._discard(place)
            return None
        return lease

    def _begun(self, key: str) -> list[Path]:
        """A first folder for a run; none if another process has created one."""
        hidden, place = self.path / "work" / f".{token_hex(4)}", self.path / "work" / f"{key}{FRESH}"
        hidden.mkdir(parents=True)
        try:
            sign(hidden, "0")  # so that the folder is neither considered abandoned nor replaced
            if not move(hidden, place):
                return []
        except FileNotFoundError:  # another process has tidied up in between
            return []
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
        if self.unfinished().get(key) != [place]:  # another folder was taken over in the meantime
            self._discard(place)
            return []
        return [place]

    def publish(self, lease: Lease, key: str) -> None:
        """Move a run to the finished ones; if another process was first, its result is the same."""
        lease.end()
        (lease.folder / FAILURE).unlink(missing_ok=True)
        place = self.path / "runs" / key
        if move(lease.folder, place):
            (place / sign_of(lease.folder).name).unlink(missing_ok=True)
        else:
            self._discard(lease.folder)

    def fail(self, lease: Lease, kind: str, error: list[str]) -> None:
        """Record why a run ended without a result, and release it for another attempt."""
        before = read_failure(lease.folder)
        try:
            write_json(lease.folder / FAILURE, Failure(kind, error, 1 + (before.attempts if before else 0)))
        finally:
            lease.give_back()

    def _unsign(self, key: str) -> None:
        """Remove the sign of life of a process that was killed while it published a run."""
        for file in (self.path / "runs" / key).glob("lease.*"):
            file.unlink(missing_ok=True)

    def _discard(self, folder: Path) -> None:
        """Hide a folder, then remove it: no process may find it partly removed."""
        hidden = self.path / "work" / f".{token_hex(4)}"
        if move(folder, hidden):
            shutil.rmtree(hidden, ignore_errors=True)

    def put_aside(self, folder: Path) -> None:
        """Keep a damaged folder for inspection, out of the way."""
        move(folder, self.path / "damaged" / f"{folder.name.partition('.')[0]}.{token_hex(4)}")


def _shared(plan: Plan) -> dict[str, Any]:
    """What all runs of a plan have in common."""
    unseen = ", ".join(filter(None, plan.unseen)) or None
    return {**vars(plan.shared), "unseen": unseen, "hparams": plan.hparams}


def read_failure(folder: Path) -> Failure | None:
    """Why a run failed, if it did."""
    try:
        return read_json(folder / FAILURE, Failure)
    except (OSError, ValueError):
        return None
