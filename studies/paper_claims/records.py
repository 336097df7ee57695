"""What is kept of a run for the page: one line of JSON, with nothing about the machine that produced it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from crosstail.reports.compare.feature_charts import bound_table, discrepancy_table, model_features
from crosstail.storage import write_whole
from crosstail.training.folder import RunFolder
from crosstail.training.result import Evaluation

Record = dict[str, Any]
NUS = (0.0, 1.0)


class Records:
    """The runs of a .jsonl file by key; these are not run again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.runs: dict[str, Record] = {record["run"]: record for record in map(json.loads, lines)}

    def __contains__(self, key: str) -> bool:
        return key in self.runs

    def add(self, key: str, record: Record) -> None:
        """Keep a run."""
        self.runs[key] = {"run": key, **record}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(self.runs[key], ensure_ascii=False) + "\n" for key in sorted(self.runs)]
        write_whole(self.file, "".join(lines).encode())

    def validation(self, key: str, stage: int) -> float:
        """The validation accuracy of a run at the end of a stage; a run that failed is never the best."""
        record = self.runs[key]
        return -1.0 if "failed" in record else float(record["stages"][stage - 1]["validation"])


def distil(folder: RunFolder, look: bool) -> Record:
    """The record of a finished run; with `look`, also measurements on its features."""
    result, evaluations = folder.finished_result(), folder.records()
    spec = msgspec.to_builtins(result.spec)
    record: Record = {
        "spec": {name: value for name, value in spec.items() if value is not None} | {"dataset": _name(spec)},
        "versions": result.versions,
        "seconds": result.seconds,
        "counts": result.counts,
        "totals": result.test.totals,
        "stages": [
            _stage([e for e in evaluations if e.stage == stage], step, result.spec.selected_on)
            for stage, step in enumerate(result.selected_steps, start=1)
        ],
        "transferability": {n: round(v, 5) for n, v in msgspec.to_builtins(result.transferability).items()},
    }
    return record | _look(folder) if look else record


def _name(spec: Record) -> str:
    return Path(spec["dataset"]).name


def _stage(evaluations: Sequence[Evaluation], selected: int, on: str) -> Record:
    """The selected evaluation of a stage, and the curve of the validation accuracy that it was selected on."""
    curve = [[e.step, round(getattr(e.validation, on) or 0.0, 5)] for e in evaluations]
    best = next(e for e in evaluations if e.step == selected)
    return {"step": selected, "validation": dict(map(tuple, curve))[selected], "hits": best.test.hits, "curve": curve}


def _look(folder: RunFolder) -> Record:
    """The bound over all training samples, and the distance of test from training features, by shots."""
    model = model_features(folder.path)
    by_shots = discrepancy_table(model).groupby("shot")[["mean", "other_mean"]].mean()
    bounds = bound_table([model], NUS)
    return {
        "bound": bounds[["ν", "empirical", "theoretical"]].round(7).to_numpy().tolist(),
        "discrepancy": {str(shot): row.round(5).to_dict() for shot, row in by_shots.iterrows()},
    }
