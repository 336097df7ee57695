"""The runs that leave out each domain or fold in turn, as one run that was tested on the samples of all."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from crosstail.data.dataset import UNUSED
from crosstail.reports.run.reported import ReportedRun
from crosstail.training.predictions import Predictions
from crosstail.training.result import mean_counts, pooled_accuracy


def together(runs: Sequence[ReportedRun]) -> ReportedRun | None:
    """All test samples with their predictions in the order of the data; None if a run lacks predictions or data."""
    data = [run.dataset for run in runs if run.dataset is not None]
    told = [run.predictions for run in runs if run.predictions is not None]
    if min(len(data), len(told)) < len(runs) or any(not np.array_equal(one.y, data[0].y) for one in data):
        return None
    rows = np.concatenate([dataset.rows("test") for dataset in data])
    order = rows.argsort(kind="stable")
    parts = {name: np.concatenate([getattr(part, name) for part in told]) for name in ("predicted", "y", "domain")}
    split = np.full(len(data[0]), UNUSED)
    split[rows] = "test"
    results = [run.result for run in runs]
    spec, counts = replace(results[0].spec, unseen=None, fold=None), mean_counts(results)
    result = msgspec.structs.replace(
        results[0], spec=spec, counts=counts.tolist(), test=pooled_accuracy(results, counts), known=None
    )
    predictions = Predictions(**{name: values[order] for name, values in parts.items()})
    return ReportedRun(runs[0].folder, result, (), predictions, replace(data[0], split=split))
