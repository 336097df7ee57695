"""The page on label errors is what its command writes from the counts that are kept."""

import json

import numpy as np
from studies import label_errors

from crosstail import load
from crosstail.testing import save_separable


def test_the_page_is_that_of_the_records():
    records = json.loads(label_errors.RECORDS.read_text(encoding="utf-8"))
    assert label_errors.page(records) == label_errors.PAGE.read_text(encoding="utf-8")
    assert {one["to"] for one in records} == {"", *label_errors.KINDS}


def test_as_many_labels_are_changed_as_is_said(tmp_path):
    save_separable(tmp_path / "data.npz", [[90, 10, 20], [10, 60, 10]])
    dataset = load(str(tmp_path / "data.npz"))
    for to in label_errors.KINDS[:2]:
        changed, rows = label_errors.flipped(dataset, to, seed=1)
        assert set(np.flatnonzero(changed.y != dataset.y)) == set(rows) and len(rows) == round(len(dataset) / 20)
