"""Finished runs from any folders, as one table with a row per run."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crosstail.metrics import PairAccuracy
from crosstail.report.tables import Result
from crosstail.sweep.select import choices
from crosstail.sweep.store import Store
from crosstail.training import RunSpec

# What two runs must have in common to be compared, beside data, label profiles and protocol.
SETTINGS = ("backbone", "freeze", "width", "augment", "precision", "steps", "batch_size", "data_seed", "skip_broken")
UNFINISHED = "not finished"


class Skipped(NamedTuple):
    """A folder that is not read as a result, and why."""

    path: Path
    why: str


class Found(NamedTuple):
    """A finished run, whether its hyperparameters are the chosen ones, and of how many trials."""

    folder: Path
    result: Result
    chosen: bool = True
    trials: int | None = None


@dataclass(frozen=True)
class Runs:
    """`table` has the columns data, method, algorithm, decouple, average, hparams, seed, unseen, chosen, trials,
    folder and result; `skipped` is what was found beside them.
    """

    table: pd.DataFrame
    skipped: tuple[Skipped, ...]

    @property
    def chosen(self) -> pd.DataFrame:
        """The runs that results are reported of: all but the trials of a sweep that were not chosen."""
        return self.table[self.table["chosen"]]


def read_runs(places: Sequence[Path]) -> Runs:
    """Read run folders, sweeps, and folders that hold such, at any depth."""
    found: list[Found] = []
    skipped: list[Skipped] = []
    for place in places:
        if not place.is_dir():
            raise FileNotFoundError(f"{place}: there is no such folder")
        for one in _under(place):
            (found if isinstance(one, Found) else skipped).append(one)  # type: ignore[arg-type]
    table, repeated = _table(found)
    if table.empty:
        reasons = "".join(f"; {path}: {why}" for path, why in skipped[:1])
        raise ValueError(f"{', '.join(map(str, places))}: no finished run in there{reasons}")
    return Runs(table, (*skipped, *repeated))


def read_result(folder: Path) -> Result | str:
    """A whole result, its tables as arrays, or why there is none."""
    file = folder / "result.json"
    if not file.exists():
        return UNFINISHED
    try:
        result: Result = json.loads(file.read_bytes())
        RunSpec.from_json(result["spec"])
        shape = len(result["domains"]), len(result["classes"])
        result["counts"] = np.asarray(result["counts"], np.int32)
        for split in ("validation", "test"):
            accuracy = PairAccuracy.from_json(result[split])
            if accuracy.totals.shape != shape or result["counts"].shape != shape:
                return f"result.json has tables that are not {shape[0]} domains by {shape[1]} classes"
            result[split] |= {"hits": accuracy.hits.astype(np.int32), "totals": accuracy.totals.astype(np.int32)}
        float(result["transferability"]["alpha"] or 0), result["data"]["checksum"]
    except KeyError as error:
        return f"result.json has no {error}"
    except (OSError, ValueError, TypeError, AttributeError) as error:
        return f"result.json cannot be read ({error})"
    return result


def _under(place: Path) -> Iterator[Found | Skipped]:
    for parent, folders, files in os.walk(place):
        folder = Path(parent)
        if "plans" in folders:
            folders.clear()
            yield from _of_sweep(folder)
        elif "spec.json" in files or "result.json" in files:
            folders.clear()
            result = read_result(folder)
            yield Skipped(folder, result) if isinstance(result, str) else Found(folder, result)
        folders.sort()


def _of_sweep(folder: Path) -> Iterator[Found | Skipped]:
    """The finished runs of a sweep; chosen are the seeds of each algorithm's best trial."""
    store = Store.existing(folder)
    results: dict[str, Result] = {}
    for run in sorted((folder / "runs").glob("*")):
        result = read_result(run)
        if not isinstance(result, str) and RunSpec.from_json(result["spec"]).key != run.name:
            result = "result.json is that of another run"
        if isinstance(result, str):
            yield Skipped(run, result)
        else:
            results[run.name] = result
    failures = store.failures()
    for key, folders in store.unfinished().items():
        if key not in results:
            failure = failures.get(key)
            why = ": ".join([failure.kind, *failure.error[-1:]]) if failure else UNFINISHED
            yield Skipped(folders[0], why)
    trials: dict[str, int] = {}
    for choice in choices(store, results):
        keys = [key for seed in choice.finals() for key in seed]
        trials |= dict.fromkeys(keys, choice.finished)
        for key in keys:
            if key not in results and key not in store.unfinished():
                yield Skipped(folder / "runs" / key, "not begun")
    for key, result in results.items():
        yield Found(folder / "runs" / key, result, key in trials, trials.get(key))


def _table(found: Sequence[Found]) -> tuple[pd.DataFrame, list[Skipped]]:
    """One row per run; a run that is there twice counts once."""
    rows: dict[Any, dict[str, Any]] = {}
    repeated = []
    for folder, result, chosen, trials in found:
        spec = result["spec"]
        words = json.dumps(spec["hparams"], sort_keys=True)
        row = {name: spec[name] for name in ("algorithm", "decouple", "average", "seed", "unseen")}
        identity = _setting(result), *row.values(), words
        if identity in rows:
            repeated.append(Skipped(folder, f"the same run as {rows[identity]['folder']}"))
            rows[identity]["chosen"] |= chosen
            continue
        row |= {"hparams": words, "setting": identity[0], "chosen": chosen, "trials": trials}
        rows[identity] = {**row, "folder": folder, "result": result}
    table = pd.DataFrame(list(rows.values()))
    if table.empty:
        return table, repeated
    table["data"] = table["setting"].map(_data_names(list(dict.fromkeys(table["setting"]))))
    table["method"] = _method_names(table)
    return table.drop(columns="setting"), repeated


def _setting(result: Result) -> tuple[tuple[str, Any], ...]:
    """What runs must share to stand in one table; under dg the checksum follows the unseen domain and is left out."""
    spec = result["spec"]
    labels = "" if spec["labels"] is None else " ".join(spec["labels"])
    content = result["data"]["checksum"][:8] if spec["unseen"] is None else str(result["data"]["samples"])
    base = ("name", spec["dataset"].rstrip("/").split("/")[-1]), ("labels", labels), ("protocol", spec["protocol"])
    return (*base, *((name, spec[name]) for name in SETTINGS), ("content", content))


def _data_names(settings: list[Any]) -> dict[Any, str]:
    """A name for each setting: data set, labels, protocol, and else only what tells it from its namesakes."""
    found = {}
    for setting in settings:
        known = dict(setting)
        same = [other for other in settings if other[:3] == setting[:3]]
        differing = [i for i in range(3, len(setting)) if len({other[i] for other in same}) > 1]
        parts = [known["name"], known["labels"], "" if known["protocol"] == "mdlt" else known["protocol"]]
        parts += [f"{setting[i][0].replace('_', ' ')} {setting[i][1]}" for i in differing]
        found[setting] = ", ".join(part for part in parts if part)
    return found


def _method_names(table: pd.DataFrame) -> list[str]:
    """Algorithm, second stage, averaged weights, and the hyperparameters that tell it from others on the same data."""
    hparams = [json.loads(words) for words in table["hparams"]]
    keys = list(zip(table["data"], table["algorithm"], table["decouple"], table["average"], strict=True))
    values: dict[Any, dict[str, set[str]]] = {}  # by key and word, the values of the chosen runs
    for key in {key for key, chosen in zip(keys, table["chosen"], strict=True) if chosen}:
        same = [given for k, given, chosen in zip(keys, hparams, table["chosen"], strict=True) if chosen and k == key]
        words = dict.fromkeys(word for given in same for word in given)
        values[key] = {word: {json.dumps(given.get(word)) for given in same} for word in words}
    names = []
    for key, given in zip(keys, hparams, strict=True):
        name = key[1] + ", decoupled" * key[2] + ", averaged" * key[3]
        told = [word for word, found in values.get(key, {}).items() if len(found) > 1 and word in given]
        names.append(name + "".join(f", {word} {given[word]}" for word in told))
    return names
