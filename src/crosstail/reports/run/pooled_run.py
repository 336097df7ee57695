"""The runs that leave out each domain or fold in turn, as one that was tested on the samples of all."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosstail.metrics import Answers
from crosstail.training.run import Run


def pooled_answers(runs: Sequence[Run]) -> Answers | None:
    """All test samples with their answers in the order of the data; None if a run lacks its answers or its data."""
    data = [run.dataset for run in runs if run.dataset is not None]
    tested = [run.test for run in runs if run.test is not None]
    if min(len(data), len(tested)) < len(runs) or any(not np.array_equal(one.y, data[0].y) for one in data):
        return None
    rows = [dataset.rows("test") for dataset in data]
    return Answers.pooled([replace(of, row=own, informed=None) for of, own in zip(tested, rows, strict=True)]).sorted()
