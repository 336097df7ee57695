import json

import numpy as np
import pytest
from msgspec.structs import replace as changed

from crosstail.metrics._methods import holm
from crosstail.reports.compare.two_runs import compare
from crosstail.reports.compare.two_runs_page import page, summary
from crosstail.reports.document import html
from crosstail.reports.document.model import Chart, Table, Text
from crosstail.storage import write_json
from crosstail.training.folder import RunFolder

TOTALS = [[40, 40], [40, 0]]


@pytest.fixture
def two(make_run):
    """The second is worse on one pair, much worse on another, and equal on the third."""
    return make_run("a", [[38, 36], [30, 0]], totals=TOTALS, algorithm="boda"), make_run(
        "b", [[36, 12], [30, 0]], totals=TOTALS
    )


def test_metrics_are_differences_of_both_runs(two):
    found = compare(*two)
    assert found.names == ("boda", "erm") and found.samples == 120
    metrics = {metric.name: metric for metric in found.metrics}
    main = found.metrics[0]
    assert main.name == "pair average" and main.first == pytest.approx((38 + 36 + 30) / 120)
    assert main.difference == pytest.approx(main.first - main.second) and main.test.p_value < 0.01
    assert metrics["worst pair"].second == pytest.approx(12 / 40) and metrics["worst pair"].test is None
    assert metrics["many-shot pairs"].difference == pytest.approx(2 / 40)  # one pair has 150 samples


def test_pairs_have_corrected_p_values_and_only_real_differences_are_sure(two):
    found = compare(*two)
    assert len(found.pairs) == 3  # one has no test samples
    assert found.pairs["difference"].tolist() == pytest.approx([5, 60, 0])
    assert found.pairs["p"].tolist() == pytest.approx([2 * 0.5**2, 2 * 0.5**24, 1])
    assert found.pairs["adjusted"].tolist() == pytest.approx(holm(found.pairs["p"]).tolist())
    assert found.sure["class"].tolist() == ["c1"] and found.sure["low"].iloc[0] > 0
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["pairs"][1]["difference"] == pytest.approx(0.6) and plain["metrics"]["pair average"]["p_value"] < 0.01


def test_the_page_and_the_terminal_name_both_and_what_differs(two):
    found = compare(*two)
    blocks = page(found).blocks
    assert {Chart, Table} <= {type(block) for block in blocks}
    text = html.render(page(found))
    assert "boda is better than erm" in text and "d0 / c1" in text and "Holm" in text
    swapped = compare(*reversed(two))
    assert "worse" in next(block.text for block in page(swapped).blocks)
    table = summary(found)[2]
    assert table.rows[0][0] == "d0 / c1" and table.emphasised == {(0, len(table.header) - 1)}


def test_pairs_without_a_difference_are_counted_and_left_out(two, make_run):
    found = compare(*two)
    for blocks in (page(found).blocks, summary(found)):
        table = [block for block in blocks if isinstance(block, Table)][-1]
        assert [row[0] for row in table.rows] == ["d0 / c1", "d0 / c0"]
        assert "1 pair without a difference is left out." in table.note
    same = compare(*(make_run(name, [[38, 36], [30, 0]], totals=TOTALS, algorithm=name) for name in ("erm", "boda")))
    assert not any(isinstance(block, Chart) for block in page(same).blocks)
    assert len([block for block in page(same).blocks if isinstance(block, Table)]) == 1  # the metrics
    said = " ".join(block.text for block in summary(same) if isinstance(block, Text))
    assert "have the same accuracy on each of the 3 pairs" in said


def test_a_heat_map_without_colour_is_left_out(make_run):
    close = compare(*(make_run(name, [[hits, 36], [30, 0]], totals=TOTALS) for name, hits in (("a", 38), ("b", 37))))
    assert [type(block) for block in page(close).blocks].count(Table) == 2
    assert not any(isinstance(block, Chart) for block in page(close).blocks)


def test_runs_of_one_method_are_told_apart_by_their_folders(make_run):
    runs = [make_run(f"s{seed}", [[10, 6], [4, 0]], seed=seed) for seed in (0, 1)]
    found = compare(*runs)
    assert found.names == tuple(map(str, runs)) and found.metrics[0].difference == 0
    assert "same answers" in page(found).blocks[0].text and "on each of the 4 pairs" in html.render(page(found))


def test_folds_are_pooled(make_run, tmp_path):
    for algorithm, hits in (("erm", 4), ("boda", 9)):
        for fold in (1, 2):
            make_run(f"{algorithm}/fold-{fold}", [[hits, hits]] * 2, algorithm=algorithm, folds=2, fold=fold)
    found = compare(tmp_path / "boda", tmp_path / "erm")
    assert found.samples == 80 and found.metrics[0].difference == pytest.approx(0.5)


def test_other_data_or_another_split_are_refused_with_what_differs(make_run, tmp_path):
    one, other, third = (
        make_run(name, [[10, 6], [4, 0]], data_seed=seed) for name, seed in (("a", 0), ("b", 1), ("c", 0))
    )
    for place, seed in ((other, "b"), (third, "c")):
        result = RunFolder(place).finished_result()
        write_json(place / "result.json", changed(result, data=changed(result.data, checksum=seed * 64)))
    with pytest.raises(ValueError, match="data_seed is 0 and 1"):
        compare(one, other)
    with pytest.raises(ValueError, match="changed"):
        compare(one, third)


def test_a_folder_of_several_runs_and_one_without_predictions_are_refused(make_run, tmp_path):
    one, other = make_run("all/a", [[10, 6], [4, 0]]), make_run("all/b", [[10, 6], [4, 0]], algorithm="boda")
    with pytest.raises(ValueError, match="2 runs"):
        compare(tmp_path / "all", one)
    (other / "predictions.pt").unlink()
    with pytest.raises(ValueError, match=r"all/b has no predictions\.pt"):
        compare(one, other)


def test_the_track_with_the_domain_known_has_a_row_if_one_uses_it(make_run):
    one = make_run("a", [[9, 8], [5, 2]], algorithm="mtl", known=[[10, 8], [6, 4]])
    other = make_run("b", [[9, 8], [5, 2]])
    found = compare(one, other)
    names = [metric.name for metric in found.metrics]
    assert names[1] == "pair average, domain known" and found.metrics[1].first == pytest.approx(0.7)
    assert np.isfinite(found.pairs["low"]).all()
