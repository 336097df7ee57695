"""What is kept of a run for the page: one line of JSON, with nothing about the machine that produced it."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from crosstail.report.compare.feature_charts import bound_table, discrepancy_table, model_features
from crosstail.storage import write_whole
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder
from crosstail.training.result import Evaluation

Record = dict[str, Any]
HERE = Path(__file__).parent
FOLDER = HERE / "records"
NUS = (0.0, 1.0)


class Records:
    """The runs of a .jsonl file by key; these are not run again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.runs: dict[str, Record] = {record["key"]: record for record in map(json.loads, lines)}

    def add(self, record: Record) -> None:
        """Keep a run; it replaces an earlier record with the same key."""
        self.runs[record["key"]] = record
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(self.runs[key], ensure_ascii=False) + "\n" for key in sorted(self.runs)]
        write_whole(self.file, "".join(lines).encode())

    def has(self, key: str, look: bool = False) -> bool:
        """Whether a run is known; with `look`, also the measurements on its features."""
        record = self.runs.get(key)
        return record is not None and (not look or "bound" in record or "failed" in record)

    def validation(self, stage: int) -> dict[str, float]:
        """The validation accuracy that the choice is made on, by key, at the end of a stage."""
        return {
            key: record["stages"][stage - 1]["validation"]
            for key, record in self.runs.items()
            if len(record.get("stages", ())) >= stage
        }


def words(spec: RunSpec) -> Record:
    """The key of a spec and its fields that are not the default."""
    plain, default = msgspec.to_builtins(spec), msgspec.to_builtins(RunSpec(dataset=""))
    return {"key": spec.key, **{name: value for name, value in plain.items() if value != default[name]}}


def spec_of(record: Record) -> RunSpec:
    """The spec of a record."""
    return msgspec.convert({f.name: record[f.name] for f in fields(RunSpec) if f.name in record}, RunSpec)


def distil(spec: RunSpec, folder: RunFolder, look: bool) -> Record:
    """The record of a finished run; with `look`, also the measurements on its features."""
    result, evaluations = folder.finished_result(), folder.records()
    stages = sorted({evaluation.stage for evaluation in evaluations})
    transferability = msgspec.to_builtins(result.transferability)
    record: Record = {
        **words(spec),
        "seconds": result.seconds,
        "counts": result.counts,
        "totals": result.test.totals,
        "stages": [_stage([e for e in evaluations if e.stage == stage]) for stage in stages],
        "transferability": {name: round(value, 5) for name, value in transferability.items()},
    }
    return record | _look(folder) if look else record


def _stage(evaluations: Sequence[Evaluation]) -> Record:
    """The evaluation of a stage that is best on validation (the first in a tie), and the validation curve."""

    def accuracy(evaluation: Evaluation) -> float:
        assert evaluation.validation.pair_average is not None
        return evaluation.validation.pair_average

    best = max(evaluations, key=lambda e: (accuracy(e), -e.step))
    curve = [[e.step, round(accuracy(e), 5)] for e in evaluations]
    return {"step": best.step, "validation": accuracy(best), "hits": best.test.hits, "curve": curve}


def _look(folder: RunFolder) -> Record:
    """The bound over all training samples, and the distance of test from training features, by shots."""
    model = model_features(folder.path)
    by_shots: pd.DataFrame = discrepancy_table(model).groupby("shot")[["mean", "other_mean"]].mean()
    bounds = bound_table([model], NUS)
    return {
        "bound": bounds[["ν", "empirical", "theoretical"]].round(7).to_numpy().tolist(),
        "discrepancy": {str(shot): row.round(5).to_dict() for shot, row in by_shots.iterrows()},
    }
