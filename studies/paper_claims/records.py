"""What is kept of a run for the page: one line of JSON, with nothing in it of the machine that it was made on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.report.compare.feature_charts import ModelFeatures, bound_table, discrepancy_table
from crosstail.sweep.files import write_whole
from crosstail.sweep.worker import inputs
from crosstail.training import RunSpec
from crosstail.training.evaluation import features
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model
from crosstail.transfer import TransferabilityGraph

Record = dict[str, Any]
FOLDER = Path(__file__).with_name("records")
NUS = (0.0, 1.0)


class Records:
    """The runs of a .jsonl file by key; those that are in it need not be run again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self.runs: dict[str, Record] = {record["key"]: record for record in map(json.loads, lines)}

    def add(self, record: Record) -> None:
        """Keep a run, in place of an earlier record of the same."""
        self.runs[record["key"]] = record
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(self.runs[key], ensure_ascii=False) + "\n" for key in sorted(self.runs)]
        write_whole(self.file, "".join(lines))

    def has(self, key: str, look: bool = False) -> bool:
        """Whether a run is known; with `look`, also how its features lie."""
        record = self.runs.get(key)
        return record is not None and (not look or "bound" in record or "failed" in record)

    def validation(self, stage: int) -> dict[str, float]:
        """The figure that a choice is made on, by key, at the end of a stage."""
        return {
            key: record["stages"][stage - 1]["validation"]
            for key, record in self.runs.items()
            if len(record.get("stages", ())) >= stage
        }


def words(spec: RunSpec) -> Record:
    """What of a spec is not the default, and its key."""
    plain, default = spec.to_json(), RunSpec(dataset="").to_json()
    return {"key": spec.key, **{name: value for name, value in plain.items() if value != default[name]}}


def spec_of(record: Record) -> RunSpec:
    """The spec of a record."""
    return RunSpec.from_json({name: record[name] for name in RunSpec(dataset="").to_json() if name in record})


def distil(spec: RunSpec, folder: RunFolder, look: bool) -> Record:
    """The figures of a finished run under the name of its spec; with `look`, also how its features lie."""
    result, evaluations = folder.result(), folder.records()
    assert result is not None
    stages = sorted({evaluation["stage"] for evaluation in evaluations})
    record: Record = {
        **words(spec),
        "seconds": result["seconds"],
        "counts": result["counts"],
        "totals": result["test"]["totals"],
        "stages": [_stage([e for e in evaluations if e["stage"] == stage]) for stage in stages],
        "transferability": {name: round(value, 5) for name, value in result["transferability"].items()},
    }
    return record | _look(folder) if look else record


def _stage(evaluations: Sequence[Record]) -> Record:
    """The evaluation of a stage that is best on validation, the first of equals, and the validation curve."""
    best = max(evaluations, key=lambda e: (e["validation"]["pair_average"], -e["step"]))
    curve = [[e["step"], round(e["validation"]["pair_average"], 5)] for e in evaluations]
    hits, validation = best["test"]["hits"], best["validation"]["pair_average"]
    return {"step": best["step"], "validation": validation, "hits": hits, "curve": curve}


def _look(folder: RunFolder) -> Record:
    """The bound over all training samples, and how far test features are from training, by shots."""
    spec = folder.spec()
    dataset = inputs(spec).dataset
    model = load_model(folder, dataset)
    rows = {split: dataset.rows(split) for split in ("train", "test")}
    z = {split: features(model, dataset, own) for split, own in rows.items()}
    y = {split: dataset.y[own] for split, own in rows.items()}
    domain = {split: dataset.domain[own] for split, own in rows.items()}
    sizes: dict[str, Any] = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
    graph = TransferabilityGraph.from_features(z["train"], y["train"], domain["train"], **sizes)
    names = dataset.domains, dataset.classes, shot_thresholds(spec.dataset)
    model_features = ModelFeatures(spec.method, z, y, domain, *names, graph)
    by_shots: pd.DataFrame = discrepancy_table(model_features).groupby("shot")[["mean", "other_mean"]].mean()
    bounds = bound_table([model_features], NUS)
    return {
        "bound": bounds[["ν", "empirical", "theoretical"]].round(7).to_numpy().tolist(),
        "discrepancy": {str(shot): row.round(5).to_dict() for shot, row in by_shots.iterrows()},
    }
