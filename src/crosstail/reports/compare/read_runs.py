"""Finished runs from any folders, as one table with a row per run."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import data_name
from crosstail.metrics import PairAccuracy, find
from crosstail.storage import read_json
from crosstail.sweeps.index import Accuracies, Summary
from crosstail.sweeps.race_result import RaceResult
from crosstail.sweeps.select import choices
from crosstail.sweeps.store import Store
from crosstail.training.data_facts import DataFacts
from crosstail.training.folder import RunFolder
from crosstail.training.result import Transferability
from crosstail.training.spec import RunSpec, key_of

OF_METHOD = ("algorithm", "second_stage", "average", "hparams", "seed", "unseen", "fold")
"""Fields that vary within a setting. All other identifying fields must be equal for runs to share a table."""

UNFINISHED = "not finished"
Setting = tuple[tuple[str, str], ...]
"""Names and values of the fields that runs must have in common to be compared."""


class SkippedFolder(NamedTuple):
    """A folder that is not read as a result, and why."""

    path: Path
    why: str


@dataclass(frozen=True, eq=False)
class ReportRow:
    """What a comparison needs of a finished run. Thousands may be in memory, so the tables are small integer arrays."""

    folder: Path
    spec: RunSpec
    domains: list[str]
    classes: list[str]
    counts: NDArray[np.int32]  # (D, C)
    hits: NDArray[np.int32]  # (D, C), on the test set
    totals: NDArray[np.int32]
    squares: NDArray[np.int64] | None
    known_hits: NDArray[np.int32] | None  # with the domain known, if the model uses it
    selected_by: Accuracies  # on validation: what its evaluation and trial were selected on, and the pair average
    test: float | None  # pair average
    transferability: Transferability
    data: DataFacts
    shots: tuple[int, int] = (100, 20)
    critical: Sequence[str] = ()  # classes that must not be missed
    chosen: bool = True  # whether its hyperparameters won the search
    trials: int | None = None  # that it was chosen from

    def accuracy(self, known: bool = False) -> PairAccuracy:
        """Test accuracy per pair; with the domain `known`, the same as without if the model ignores it."""
        hits = self.known_hits if known and self.known_hits is not None else self.hits
        return PairAccuracy(hits.astype(np.int64), self.totals.astype(np.int64), self.squares)

    @property
    def validation(self) -> float | None:
        """What it was selected by, in % if it is a share."""
        on = self.spec.selected_on
        value = self.selected_by[on]
        return None if value is None else find(on).scale * value

    @property
    def searched(self) -> bool:
        """Whether its hyperparameters were selected for its unseen domain and seed."""
        return self.trials is not None and self.spec.unseen_domains


@dataclass(frozen=True)
class Runs:
    """`table` has the columns data, method, algorithm, hparams, seed, part, chosen, trials and run."""

    table: pd.DataFrame
    skipped: tuple[SkippedFolder, ...]
    races: tuple[RaceResult, ...] = ()

    @property
    def chosen(self) -> pd.DataFrame:
        """The runs to report: all except the trials of a sweep that were not chosen."""
        return self.table[self.table["chosen"]]


def read_runs(places: Sequence[Path]) -> Runs:
    """Read run folders, sweeps, and folders that contain them at any depth."""
    found: list[ReportRow] = []
    skipped: list[SkippedFolder] = []
    for place in places:
        if not place.is_dir():
            raise FileNotFoundError(f"{place}: there is no such folder")
        for one in _under(place):
            (found if isinstance(one, ReportRow) else skipped).append(one)  # type: ignore[arg-type]
    table, repeated = _table(found)
    if table.empty:
        reasons = "".join(f"; {path}: {why}" for path, why in skipped[:1])
        raise ValueError(f"{', '.join(map(str, places))}: no finished run found{reasons}")
    answers = sorted({run.folder.parent.parent / "race.json" for run in found if run.folder.parent.name == "runs"})
    races = (read_json(file, RaceResult) for file in answers if file.exists())
    return Runs(table, (*skipped, *repeated), tuple(race for race in races if race.recommendation))


def read_result(folder: Path) -> ReportRow | SkippedFolder:
    """A finished run, or why there is none."""
    try:
        result = RunFolder(folder).result()
        if result is None:
            return SkippedFolder(folder, UNFINISHED)
        if result.spec.stop_at is not None:
            return SkippedFolder(folder, "trained on every sample, so it has no test accuracy of its own")
    except (OSError, ValueError) as error:
        return SkippedFolder(folder, str(error).removeprefix(f"{folder}/"))
    test, known = result.test.pairs(), result.tested(known=True).pairs()
    return ReportRow(
        folder=folder,
        spec=result.spec,
        domains=result.domains,
        classes=result.classes,
        counts=np.asarray(result.counts, np.int32),
        hits=test.hits.astype(np.int32),
        totals=test.totals.astype(np.int32),
        squares=test.squares,
        known_hits=known.hits.astype(np.int32) if result.known else None,
        selected_by={on: result.validation.value(on) for on in (result.spec.selected_on, "pair_average")},
        test=result.test.pair_average,
        transferability=result.transferability,
        data=result.data,
        shots=result.shots,
        critical=list(result.critical),
    )


def _under(place: Path) -> Iterator[ReportRow | SkippedFolder]:
    for parent, folders, files in os.walk(place):
        folder = Path(parent)
        if "plans" in folders:
            folders.clear()
            yield from _of_sweep(folder)
        elif "spec.json" in files or "result.json" in files:
            folders.clear()
            yield read_result(folder)
        folders.sort()


def _of_sweep(folder: Path) -> Iterator[ReportRow | SkippedFolder]:
    """The finished runs of a sweep; chosen are the runs of the best trial, with dg of each unseen domain and seed.

    Of a race that has ended, they are the runs of its leaderboard: methods that were stopped early had fewer trials.
    """
    store = Store.existing(folder)
    runs: dict[str, ReportRow] = {}
    for place in sorted((folder / "runs").glob("*")):
        run = read_result(place)
        if isinstance(run, SkippedFolder):
            yield run
        elif run.spec.key != place.name:
            yield SkippedFolder(place, "result.json belongs to another run")
        else:
            runs[place.name] = run
    failures = store.failures()
    for key, folders in store.unfinished().items():
        if key not in runs:
            failure = failures.get(key)
            why = ": ".join([failure.kind, *failure.error[-1:]]) if failure else UNFINISHED
            yield SkippedFolder(folders[0], why)
    trials: dict[str, int] = {}
    known = {key: Summary(0.0, run.selected_by, {}) for key, run in runs.items()}
    for choice in choices(store, known):
        keys = list(chain.from_iterable(choice.finals()))
        trials |= dict.fromkeys(keys, choice.finished)
        for key in keys:
            if key not in runs and key not in store.unfinished():
                yield SkippedFolder(folder / "runs" / key, "not started")
    if (file := folder / "race.json").exists():
        board = read_json(file, RaceResult).leaderboard
        trials = {key: trials[key] for row in board for own in row.runs.values() for key in own if key in trials}
    for key, run in runs.items():
        yield replace(run, chosen=key in trials, trials=trials.get(key))


def _table(found: Sequence[ReportRow]) -> tuple[pd.DataFrame, list[SkippedFolder]]:
    """One row per run; duplicates of a run count once."""
    unique: dict[Any, ReportRow] = {}
    settings, repeated = [], []
    for run in found:
        fields = {**run.spec.identity(), "dataset": data_name(run.spec.dataset)}
        key = key_of(fields), run.data.checksum
        if key in unique:
            repeated.append(SkippedFolder(run.folder, f"the same run as {unique[key].folder}"))
            unique[key] = replace(unique[key], chosen=unique[key].chosen or run.chosen)
        else:
            unique[key] = run
            shared = {name: value for name, value in fields.items() if name not in OF_METHOD}
            content = (run.data.source or run.data.checksum)[:8]  # tells apart data of the same name
            settings.append(tuple((name, _text(value)) for name, value in {**shared, "content": content}.items()))
    runs = list(unique.values())
    names = _setting_names(list(dict.fromkeys(settings)))
    data = [names[setting] for setting in settings]
    columns = {
        "data": data,
        "method": _method_names(data, runs),
        "algorithm": [run.spec.algorithm for run in runs],
        "hparams": [msgspec.json.encode(run.spec.hparams, order="sorted").decode() for run in runs],
        "seed": [run.spec.seed for run in runs],
        "part": [run.spec.part or None for run in runs],
        "chosen": [run.chosen for run in runs],
        "trials": [run.trials for run in runs],
        "run": runs,
    }
    return pd.DataFrame(columns), repeated


def _text(value: Any) -> str:
    """A value of a field for display.

    >>> _text(None), _text(True), _text(("a", "b")), _text({"domain": "site"})
    ('default', 'yes', 'a b', 'domain=site')
    """
    if isinstance(value, dict):
        return " ".join(f"{key}={value[key]}" for key in sorted(value)) or "default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "default" if value is None else " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _setting_names(settings: Sequence[Setting]) -> dict[Setting, str]:
    """Data set, label profile, protocol and folds of each setting, and what tells it from its namesakes."""
    shown = {}
    for setting in settings:
        fields = dict(setting)
        labels, protocol, folds = fields["labels"], fields["protocol"], fields["folds"]
        shown[setting] = [fields["dataset"], *[labels] * (labels != "default")]
        shown[setting] += [protocol] * (protocol != RunSpec.protocol) + [f"{folds} folds"] * (folds != "default")
    names = {}
    for setting in settings:
        same = [other for other in settings if shown[other] == shown[setting]]
        differing = [part for i, part in enumerate(setting) if len({other[i] for other in same}) > 1]
        names[setting] = ", ".join([*shown[setting], *(f"{name.replace('_', ' ')} {text}" for name, text in differing)])
    return names


def _method_names(data: Sequence[str], runs: Sequence[ReportRow]) -> list[str]:
    """Method, averaged weights, and the hyperparameters that tell chosen runs apart, unless a dg sweep selects them."""
    keys = [(name, run.spec.method, run.spec.average) for name, run in zip(data, runs, strict=True)]
    chosen: dict[Any, list[dict[str, Any]]] = {}
    for key, run in zip(keys, runs, strict=True):
        if run.chosen and not run.searched:
            chosen.setdefault(key, []).append(run.spec.hparams)
    differing = {
        key: [
            name for name in dict.fromkeys(n for own in same for n in own) if len({repr(o.get(name)) for o in same}) > 1
        ]
        for key, same in chosen.items()
    }
    names = []
    for key, run in zip(keys, runs, strict=True):
        own = run.spec.hparams
        told = [f"{name} {own[name]}" for name in differing.get(key, ()) if name in own and not run.searched]
        averaged = [key[2] if key[2] == "swad" else f"{key[2]} average"] if key[2] else []
        names.append(", ".join([key[1], *averaged, *told]))
    return names
