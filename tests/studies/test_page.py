"""The committed page and records: up to date with the code, complete, and free of machine-specific paths."""

import json
import math

import pytest
from studies.paper_claims import page
from studies.paper_claims.accuracies import accuracy, by_seed
from studies.paper_claims.claims import interval, verdict
from studies.paper_claims.digits import DIVERGENT, SETTINGS
from studies.paper_claims.records import Records, spec_of
from studies.paper_claims.tables import value_at

FILES = sorted((page.FOLDER).glob("*.jsonl"))


def test_the_page_is_what_the_records_give():
    template = (page.TEMPLATE).read_text(encoding="utf-8")
    written = (page.PAGE).read_text(encoding="utf-8")
    assert written == page.text(page.read(page.FOLDER), template)
    assert "{{" not in written and len(written) > len(template)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_records_have_the_key_of_their_spec_and_no_path(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        record = json.loads(line)
        assert spec_of(record).key == record["key"]
        assert "/" not in record["dataset"] and "/tmp" not in line and "/work" not in line


def records_of(tmp_path, plan, entry, accuracies):
    """Records of a plan's trials and seeds with these (validation, hits of 10) by trial; seeds add one hit each."""
    records = Records(tmp_path / "records.jsonl")
    for hparams, (validation, hits) in zip(plan.drawn[entry], accuracies, strict=True):
        for seed, (spec,) in enumerate(plan.finals(entry, hparams)):
            stage = {"step": 1, "validation": validation, "hits": [[hits + seed]], "curve": [[0, 0.1]]}
            records.runs[spec.key] = {"key": spec.key, "totals": [[10]], "stages": [stage]}
    return records


def test_the_test_accuracy_is_that_of_the_best_on_validation(tmp_path):
    plan = SETTINGS["frozen"].plan(DIVERGENT)
    entry = plan.methods[0]
    accuracies = [(0.5, 7), (0.9, 2)] + [(0.1, 5)] * (plan.trials - 2)
    records = records_of(tmp_path, plan, entry, accuracies)
    assert by_seed(plan, entry, 1, records) == pytest.approx([20, 30, 40])
    del records.runs[plan.finals(entry, plan.drawn[entry][1])[2][0].key]
    assert by_seed(plan, entry, 1, records) == []
    last = plan.runs(entry, plan.drawn[entry][-1])[0].key
    records = records_of(tmp_path, plan, entry, accuracies)
    del records.runs[last]
    assert by_seed(plan, entry, 1, records) == []


def test_accuracy_is_the_mean_over_pairs_in_percent():
    record = {"totals": [[10, 100], [0, 4]], "stages": [{"hits": [[5, 100], [0, 1]]}]}
    assert accuracy(record, 1) == pytest.approx(100 * (0.5 + 1 + 0.25) / 3)


def test_interval_is_students():
    values = [1.0, 2.5, 4.0]
    deviation = math.sqrt(sum((v - 2.5) ** 2 for v in values) / 2)
    half = 4.302653 * deviation / math.sqrt(3)  # t with 2 degrees of freedom
    assert interval(values) == pytest.approx((2.5 - half, 2.5 + half), rel=1e-6)


@pytest.mark.parametrize(
    ("values", "paper", "expected"),
    [
        ([9.0, 10.0, 10.0], 9.5, "reproduced"),
        ([3.0, 3.1, 2.9], 9.5, "partly"),
        ([0.1, -0.1, 0.0], 9.5, "not: no gain"),
        ([-3.0, -3.1, -2.9], 9.5, "not: a loss"),
        ([-9.0, 12.0, 9.0], 9.5, "not shown"),
        ([], 9.5, "missing"),
    ],
)
def test_the_verdict_follows_from_the_interval(values, paper, expected):
    assert verdict(values, paper).startswith(expected)


def test_a_curve_is_read_at_the_last_evaluation_before_a_point():
    assert value_at([[0, 0.1], [40, 0.2], [80, 0.4], [100, 0.5]], 0.8) == 0.4
    assert value_at([[0, 0.1], [50, 0.2], [100, 0.5]], 0.8) == 0.2
