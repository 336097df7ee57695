"""A sweep's folder, which many processes on many machines may use at once.

    plans/KEY.json              what was asked for
    proposals/ENTRY.N/          the trials that a search has proposed, from the N-th on
    runs/KEY/                   a finished run
    work/KEY.TOKEN/             a run that is not: its checkpoint, the lease of who holds it, failure.json if it failed
    damaged/KEY.TOKEN/          what was found and could not be read
    index.jsonl                 the figures of the finished runs once more
    selected.json               the chosen hyperparameters

What changes hands is a folder that is moved: a file system lets one of several movers win, also over a network, and
whoever had it before finds it gone.
"""

import shutil
import time
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from crosstail.sweep.files import move, names, read_object, token, write_object
from crosstail.sweep.index import Index, Summary
from crosstail.sweep.lease import Lease, is_dead, sign, sign_of
from crosstail.sweep.plan import Hparams, Plan
from crosstail.training.spec import RunSpec

FAILURE = "failure.json"
FRESH = ".0"
PATIENCE = 60.0  # seconds without a sign of life, by the clock of the one who waits


class Failure(NamedTuple):
    """Why a run has no result: an error, a time limit, a worker that died, or pruned by the search."""

    kind: str
    error: list[str]  # its last lines
    attempts: int


class Proposal(NamedTuple):
    """A trial that a search wants, and where it lies in the unit cube in which the search looks for it."""

    hparams: Hparams
    unit: dict[str, float]


class Store:
    """What is asked for, what is done, and who does what."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path = path
        self.patience = patience
        self._index = Index(path)
        self._seen: dict[str, tuple[bytes, float]] = {}

    @classmethod
    def existing(cls, path: Path) -> "Store":
        """The folder of a sweep that was begun."""
        if not (path / "plans").is_dir():
            raise ValueError(f"{path} is no sweep: crosstail sweep --out {path} begins one")
        return cls(path)

    def add(self, plan: Plan) -> None:
        """Write a plan down; a folder holds one sweep, to which algorithms, trials and seeds may be added."""
        for other in self.plans():
            changed = [name for name in ("unseen", "search") if getattr(plan, name) != getattr(other, name)]
            changed += [name for name, value in vars(plan.shared).items() if getattr(other.shared, name) != value]
            if changed:
                raise ValueError(
                    f"{self.path} holds another sweep: its {', '.join(changed)} differs. Choose another --out, "
                    f"or remove the folder"
                )
        file = self.path / "plans" / f"{plan.key}.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_object(file, plan.to_json())

    def plans(self) -> list[Plan]:
        """What was asked for."""
        found = []
        for file in sorted((self.path / "plans").glob("*.json")):
            try:
                found.append(Plan.from_json(read_object(file) or {}))
            except (KeyError, TypeError, AttributeError, ValueError):
                raise ValueError(f"{file} is damaged: remove it and give the same sweep command again") from None
        return found

    def propose(self, entry: str, number: int, batch: list[Proposal]) -> None:
        """Add trials of an algorithm after so many others, unless somebody else has done so by now."""
        own = self.path / "proposals" / f".{token()}"
        own.mkdir(parents=True)
        write_object(own / "trials.json", {"trials": [list(proposal) for proposal in batch]})
        if not move(own, self._proposed(entry, number)):
            shutil.rmtree(own)

    def proposals(self, entry: str) -> list[Proposal]:
        """What was proposed for an algorithm, in order."""
        found: list[Proposal] = []
        while batch := read_object(self._proposed(entry, len(found)) / "trials.json"):
            found += [Proposal(*proposal) for proposal in batch["trials"]]
        return found

    def _proposed(self, entry: str, number: int) -> Path:
        return self.path / "proposals" / f"{quote(entry, safe='')}.{number}"

    def trials(self, plan: Plan, entry: str) -> list[Hparams]:
        """The hyperparameters of an algorithm's trials, as far as they are known."""
        return [*plan.drawn[entry], *(proposal.hparams for proposal in self.proposals(entry))][: plan.trials]

    def has(self, key: str) -> bool:
        """Whether a run is finished."""
        return (self.path / "runs" / key).exists()

    def results(self) -> dict[str, Summary]:
        """The figures of the finished runs, by key."""
        return self._index.read()

    def tidy(self) -> None:
        """Put aside what is called finished and holds no result; remove what an accident left of those that do."""
        self.results()
        for key in self._index.damaged:
            self.put_aside(self.path / "runs" / key)
        for key, folders in self.unfinished().items():
            if self.has(key):
                for folder in filter(self.abandoned, folders):
                    self._discard(folder)

    def unfinished(self) -> dict[str, list[Path]]:
        """The folders of runs that are not finished, by key; several of one run only after an accident."""
        found: dict[str, list[Path]] = {}
        place = self.path / "work"
        for name in names(place):
            if name.startswith("."):
                continue
            found.setdefault(name.partition(".")[0], []).append(place / name)
        return found

    def failures(self) -> dict[str, Failure]:
        """The runs that failed, by key, whether or not somebody tries them again just now."""
        found = {}
        for key, folders in self.unfinished().items():
            for folder in folders:
                if failure := read_failure(folder):
                    found[key] = failure
        return found

    def abandoned(self, folder: Path) -> bool:
        """Whether nobody works in a folder: given back, its holder dead, or no sign of life for too long."""
        try:
            text = sign_of(folder).read_bytes()
        except FileNotFoundError:
            return not folder.name.endswith(FRESH)  # which comes with its sign: without, it has just been moved
        now = time.monotonic()
        last, since = self._seen.get(folder.name, (b"", now))
        if text != last:
            since = now
        self._seen[folder.name] = text, since
        return is_dead(text) or now - since > self.patience

    def claim(self, spec: RunSpec, lost: Container[str] = ()) -> Lease | None:
        """A folder to work on a run in, or None if it is finished or somebody else works on it.

        `lost` names folders that somebody else has seen abandoned.
        """
        key, own = spec.key, token()
        if self.has(key):
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
        if self.has(key):  # it was finished since we looked
            lease.end()
            self._discard(place)
            return None
        return lease

    def _begun(self, key: str) -> list[Path]:
        """A first folder for a run; none if somebody else has made one."""
        hidden, place = self.path / "work" / f".{token()}", self.path / "work" / f"{key}{FRESH}"
        hidden.mkdir(parents=True)
        sign(hidden, "0")  # so nobody takes it for abandoned, or moves another one in its place
        if not move(hidden, place):
            shutil.rmtree(hidden)
            return []
        if self.unfinished().get(key) != [place]:  # we were so slow that another one has changed hands
            self._discard(place)
            return []
        return [place]

    def publish(self, lease: Lease, key: str) -> None:
        """Make a run one of the finished; if somebody else has done it, theirs is as good."""
        lease.end()
        (lease.folder / FAILURE).unlink(missing_ok=True)
        place = self.path / "runs" / key
        if move(lease.folder, place):
            (place / sign_of(lease.folder).name).unlink(missing_ok=True)
        else:
            self._discard(lease.folder)

    def fail(self, lease: Lease, kind: str, error: list[str]) -> Failure:
        """Write down why a run ended without a result, and leave it to whoever tries it again."""
        before = read_failure(lease.folder)
        failure = Failure(kind, error, 1 + (before.attempts if before else 0))
        try:
            write_object(lease.folder / FAILURE, failure._asdict())
        finally:
            lease.give_back()
        return failure

    def _discard(self, folder: Path) -> None:
        """Out of sight first: a folder that is half removed is nobody's."""
        hidden = self.path / "work" / f".{token()}"
        if move(folder, hidden):
            shutil.rmtree(hidden, ignore_errors=True)

    def put_aside(self, folder: Path) -> None:
        """Keep what cannot be read for whoever wants to look at it, out of the way."""
        move(folder, self.path / "damaged" / f"{folder.name.partition('.')[0]}.{token()}")


def read_failure(folder: Path) -> Failure | None:
    """Why a run failed, if it did."""
    try:
        return Failure(**(read_object(folder / FAILURE) or {}))
    except TypeError:
        return None
