"""The page of a run: each table against hand-made results, and the page against the names and runs it may meet."""

import json
import math
import re

import msgspec
import numpy as np
import pytest
from scipy import stats

from crosstail.metrics import PairAccuracy, wilson
from crosstail.reports.document import html
from crosstail.reports.document.model import Table
from crosstail.reports.run.charts import NUMBERED, PANEL, pair_chart, selection_chart
from crosstail.reports.run.page import folds_document, run_document, write_page
from crosstail.reports.run.tables import (
    cross_validation_table,
    fold_table,
    headline_table,
    loss_curve,
    selection_curve,
    worst_table,
)
from crosstail.reports.run.tested import Tested as Shown
from crosstail.reports.run.worst_pairs import DRAWN
from crosstail.training.result import Averaged, Evaluation, SplitAccuracy
from crosstail.training.run import Run

HITS, TOTALS = [[9, 1], [3, 0]], [[10, 4], [6, 0]]
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def result(make_result):
    """A result; by default with the hits and totals above."""
    return lambda hits=HITS, totals=TOTALS, **other: make_result(hits, totals=totals, **other)


@pytest.fixture
def fold(make_result):
    """A run that leaves domain d of two out."""

    def make(d, hits, totals, **other):
        counts, tables = [[30, 5], [30, 5]], np.zeros((2, 2, 2), int)
        counts[d], tables[0, d], tables[1, d] = [0, 0], hits, totals
        return make_result(tables[0], totals=tables[1], counts=counts, protocol="dg", unseen=f"d{d}", **other)

    return make


@pytest.fixture
def large(make_result):
    """A result over many pairs."""

    def make(domains, classes):
        shape = domains, classes
        hits = np.broadcast_to(np.arange(classes) % 5, shape)
        return make_result(hits, totals=np.full(shape, 4), counts=np.full(shape, 3))

    return make


def accuracy(value):
    """Of one pair with ten samples."""
    totals = 0 if value is None else 10
    return SplitAccuracy.of(PairAccuracy(np.array([[round(10 * (value or 0))]]), np.array([[totals]])))


def record(stage, step, validation, test, **losses):
    accuracies = {"validation": accuracy(validation), "test": accuracy(test)}
    return Evaluation(stage=stage, step=step, seconds=0.1, losses=losses, **accuracies)


RECORDS = [
    record(1, 0, 0.1, 0.2),
    record(1, 5, 0.5, 0.4, cross_entropy=1.5, alignment=3.0),
    record(1, 10, 0.7, 0.6, cross_entropy=1.0, alignment=2.0),
    record(2, 0, 0.1, 0.1),
    record(2, 5, 0.9, 0.8, cross_entropy=0.5),
    record(2, 10, 0.8, 0.9, cross_entropy=0.25),
]


def memory(path, result):
    """A run of which there is the result only."""
    return Run(path, result=result, test=None, inputs=None)


def shown(*results):
    """What pages show of these results."""
    return Shown.of_results(results)


def document(run):
    """The page of a run that has kept no probabilities."""
    return run_document(run, None)


def page_of(document):
    """The page without the script that draws it, which is the same for all."""
    return html.render(document).replace(html._vega(), "")


def test_pairs_have_counts_shots_accuracy_and_wilson_interval(result):
    table = shown(result()).pairs
    assert table[["domain", "class"]].to_numpy().tolist() == [["d0", "c0"], ["d0", "c1"], ["d1", "c0"], ["d1", "c1"]]
    assert table["count"].tolist() == [150, 40, 7, 0]
    assert table["shot"].tolist() == ["many", "medium", "few", "zero"]
    assert table["hits"].tolist() == [9, 1, 3, 0] and table["tested"].tolist() == [10, 4, 6, 0]
    assert table["accuracy"].tolist()[:3] == pytest.approx([90, 25, 50])
    assert math.isnan(table["accuracy"][3])  # no test samples
    for row, (hits, total) in enumerate([(9, 10), (1, 4), (3, 6)]):
        low, high = wilson(hits, total)
        assert (table["low"][row], table["high"][row]) == pytest.approx((100 * low, 100 * high))
        exact = stats.binomtest(hits, total).proportion_ci(0.95 ** (1 / 3))  # of three at once
        assert table["top"][row] == pytest.approx(100 * exact.high)


def test_groups_widen_intervals_and_the_page_says_so(result, finished):
    run = result(squares=[[20, 4], [18, 0]])  # worth 10²/20, 4²/4 and 6²/18 samples
    low, high = wilson(0.9 * 5, 5)
    assert shown(run).pairs.loc[0, ["low", "high"]].tolist() == pytest.approx([100 * low, 100 * high])
    plain, wide = (headline_table(shown(one)).set_index("metric") for one in (result(), run))
    assert plain["value"].equals(wide["value"])
    for metric in ("pair average", "average over domains", "many-shot pairs", "few-shot pairs"):
        assert wide.loc[metric, "low"] < plain.loc[metric, "low"] - 1, metric
    assert wide.loc["medium-shot pairs", "low"] == plain.loc["medium-shot pairs", "low"]  # in groups of one
    assert wide.loc["few-shot pairs", "low"] == pytest.approx(100 * wilson(1, 2)[0])
    text = page_of(document(finished(HITS, totals=TOTALS, squares=[[20, 4], [18, 0]])))
    assert "the 20 test samples count as 11" in text
    assert "count as" not in page_of(document(finished(HITS, totals=TOTALS)))


def test_shots_are_those_of_the_data_sheet(result):
    counts = [[31, 30, 9, 8]]
    pairs = shown(result([[1] * 4], [[2] * 4], counts=counts, dataset="digits")).pairs
    assert pairs["shot"].tolist() == ["many", "medium", "medium", "few"]


def test_folds_together_have_every_pair_once_with_the_counts_of_the_class_elsewhere(fold):
    table = shown(fold(0, [1, 2], [4, 4]), fold(1, [3, 4], [5, 5])).pairs
    assert table["domain"].tolist() == ["d0", "d0", "d1", "d1"]
    assert table["accuracy"].tolist() == pytest.approx([25, 50, 60, 80])
    assert table["count"].tolist() == [30, 5, 30, 5]
    assert table["shot"].tolist() == ["medium", "few", "medium", "few"]


def test_one_fold_has_rows_for_its_unseen_domain_only(fold):
    table = shown(fold(1, [3, 4], [5, 5])).pairs
    assert table["domain"].tolist() == ["d1", "d1"] and table["count"].tolist() == [30, 5]


def test_the_worst_pairs_come_first_and_of_equal_ones_the_more_certain(result):
    pairs = shown(result([[0, 0, 5], [2, 1, 0]], [[2, 50, 5], [4, 2, 0]], counts=[[1, 1, 1], [1, 1, 1]])).pairs
    assert worst_table(pairs)[["domain", "class"]].to_numpy().tolist() == [
        ["d0", "c1"],  # 0 of 50
        ["d0", "c0"],  # 0 of 2
        ["d1", "c0"],  # 2 of 4
        ["d1", "c1"],  # 1 of 2
        ["d0", "c2"],
    ]
    assert len(worst_table(pairs, 3)) == 3


def test_the_headline_has_the_figures_of_the_run_with_their_intervals(result):
    run = result()
    accuracies = run.test.pairs().by_class()
    table = headline_table(shown(run)).set_index("metric")
    assert table["value"].to_dict() == pytest.approx(
        {
            "pair average": (90 + 25 + 50) / 3,
            "worst pair": 25,
            "10th percentile": 30,
            "average over domains": (57.5 + 50) / 2,
            "worst domain": 50,
            "many-shot pairs": 90,
            "medium-shot pairs": 25,
            "few-shot pairs": 50,
        }
    )
    for metric, view in (
        ("pair average", "pair_average"),
        ("worst pair", "worst_pair"),
        ("worst domain", "worst_domain"),
    ):
        low, high = accuracies.interval(view)
        assert table.loc[metric, ["low", "high"]].tolist() == pytest.approx([100 * low, 100 * high])
    assert table.loc["worst pair", "what"].startswith("d0 / c1 (4 test samples")
    assert "2 with fewer than 10" in table.loc["10th percentile", "what"]
    assert table.loc["worst domain", "what"] == "d1"
    assert table.loc["few-shot pairs", "what"] == "1 with 1 to 20 training samples"


def test_the_headline_of_folds_is_over_all_of_them_without_shots(fold):
    table = headline_table(shown(fold(0, [1, 2], [4, 4]), fold(1, [3, 4], [5, 5]))).set_index("metric")
    assert table["value"].to_dict() == pytest.approx(
        {
            "pair average": (25 + 50 + 60 + 80) / 4,
            "worst pair": 25,
            "10th percentile": 25 + 0.3 * 25,
            "average over domains": (37.5 + 70) / 2,
            "worst domain": 37.5,
        }
    )


def test_the_headline_of_one_domain_has_no_worst_one(fold):
    table = headline_table(shown(fold(1, [3, 4], [5, 5]))).set_index("metric")
    expected = {"pair average": 70, "worst pair": 60, "10th percentile": 62, "all samples": 70}
    assert table["value"].to_dict() == pytest.approx(expected)
    assert table.loc["all samples", "what"] == "d1"


def test_each_unseen_domain_has_its_accuracy_and_the_last_row_is_the_mean(fold):
    runs = [fold(0, [1, 2], [4, 6], alpha=1.0), fold(1, [3, 4], [5, 5], alpha=None)]
    table = fold_table(runs).set_index("unseen")
    assert table.index.tolist() == ["d0", "d1", "mean"]
    assert table["accuracy"].tolist() == pytest.approx([30, 70, 50])
    assert table["class mean"].tolist() == pytest.approx([(25 + 100 / 3) / 2, 70, (25 / 2 + 100 / 6 + 70) / 2])
    low, high = wilson(3, 10)
    assert table.loc["d0", ["low", "high"]].tolist() == pytest.approx([100 * low, 100 * high])
    assert table.loc["mean", "low"] < 50 < table.loc["mean", "high"]
    assert table.loc["d0", "α"] == 1 and math.isnan(table.loc["d1", "α"]) and table.loc["mean", "α"] == 1
    assert table["γ"].tolist() == [4, 4, 4]


def test_curves_count_the_steps_of_both_stages_and_leave_out_untrained_models(result):
    table = selection_curve(result(), RECORDS)
    validation = table[table["split"] == "validation"]
    assert validation["at"].tolist() == [5, 10, 15, 20]
    assert validation["value"].tolist() == pytest.approx([50, 70, 90, 80])
    assert table[table["split"] == "test"]["value"].tolist() == pytest.approx([40, 60, 80, 90])
    assert table[table["reported"]][["stage", "step", "split"]].to_numpy().tolist() == [
        [2, 5, "validation"],
        [2, 5, "test"],
    ]


def test_a_fitted_stage_is_a_point_at_the_end_of_stage_one(result):
    records = [*RECORDS[:3], record(2, 0, 0.9, 0.8)]
    run = msgspec.structs.replace(result(second_stage="ncm"), selected_step=0, selected_steps=[10, 0])
    table = selection_curve(run, records)
    validation = table[table["split"] == "validation"]
    assert validation[["stage", "at"]].to_numpy().tolist() == [[1, 5], [1, 10], [2, 10]]
    assert validation["reported"].tolist() == [False, False, True]
    layers = selection_chart(table, "pair_average").to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in layers].count("rule") == 1


def test_a_run_without_validation_samples_has_a_test_curve(result):
    table = selection_curve(result(), [record(1, 0, None, 0.1), record(1, 5, None, 0.4)])
    assert table["split"].tolist() == ["test"]


def test_loss_terms_are_listed_by_name():
    table = loss_curve(RECORDS)
    assert table[["at", "term", "loss"]].to_numpy().tolist() == [
        [5, "cross_entropy", 1.5],
        [5, "alignment", 3.0],
        [10, "cross_entropy", 1.0],
        [10, "alignment", 2.0],
        [15, "cross_entropy", 0.5],
        [20, "cross_entropy", 0.25],
    ]


def test_few_classes_have_numbers_in_their_order(large):
    panel = pair_chart(shown(large(4, 10)).pairs, "training samples").to_dict()
    assert [layer["mark"]["type"] for layer in panel["layer"]] == ["rect", "point", "text", "text", "text"]
    assert panel["layer"][0]["encoding"]["color"]["field"] == "high"  # one test photo does not make a dark cell
    assert (panel["layer"][0]["encoding"]["x"]["field"], panel["layer"][0]["encoding"]["y"]["field"]) == (
        "domain",
        "class",
    )


def test_many_classes_are_in_panels_from_the_worst_to_the_best(large):
    spec = pair_chart(shown(large(6, 345)).pairs, "training samples").to_dict()
    assert NUMBERED < 345 and len(spec["concat"]) == math.ceil(345 / PANEL)
    drawn = [row for rows in spec["datasets"].values() for row in rows]
    assert len(drawn) == 2070
    accuracies = [row["accuracy"] for row in drawn]
    assert accuracies == sorted(accuracies)
    first = spec["concat"][0]["layer"]
    assert "text" not in [layer["mark"]["type"] for layer in first]
    assert first[0]["encoding"]["x"]["sort"] == [f"d{d}" for d in range(6)]  # also if the first class lacks one


def test_many_domains_go_downwards(large):
    panel = pair_chart(shown(large(30, 2)).pairs, "training samples").to_dict()
    assert panel["layer"][0]["encoding"]["y"]["field"] == "domain"


def test_with_averaged_weights_the_curve_and_its_ring_show_them(result):
    averaged = Averaged(validation=accuracy(0.8), test=accuracy(0.7))
    records = [*RECORDS[:2], msgspec.structs.replace(RECORDS[2], averaged=averaged)]
    run = msgspec.structs.replace(result(average="moving"), selected_step=10, selected_steps=[10])
    table = selection_curve(run, records)
    reported = table[table["reported"]].set_index("split")["value"]
    assert reported.to_dict() == pytest.approx({"validation": 80, "test": 70})


def test_names_from_the_data_are_shown_as_text(finished):
    run = finished(HITS, totals=TOTALS, dataset=f"photos{EVIL}")
    notes = msgspec.structs.replace(run.result.data, notes=[f"1 file was left out: {EVIL}"])
    names = {"classes": [EVIL, "<!--<script>"], "domains": ["<b>d0", "d1"], "data": notes}
    run = run.knowing(result=msgspec.structs.replace(run.result, **names), test=None)
    text = page_of(document(run)).partition("<body>")[2]
    assert EVIL not in text and "<!--" not in text and "<b>" not in text
    assert "1 file was left out: &lt;script&gt;" in text  # the note
    assert "<td>&lt;b&gt;d0 / &lt;script&gt;alert(1)&lt;/script&gt;</td>" in text  # the worst pairs
    charts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    assert len(charts) == 3
    names = {row["class"] for rows in json.loads(charts[0])["datasets"].values() for row in rows}
    assert names == {EVIL, "<!--<script>"}


def test_the_page_of_a_run_has_every_part(finished, tmp_path):
    run = finished(HITS, totals=TOTALS, alpha=None, second_stage="retrain", hparams={"lr": 0.01})
    run = Run(tmp_path / "my run", result=run.result, records=RECORDS, test=None, inputs=None)
    run.path.mkdir()
    write_page(run)
    text = (run.path / "report.html").read_text(encoding="utf-8").replace(html._vega(), "")
    assert re.findall(r"<h(\d) id=[^>]*>(.*?)</h", text) == [
        ("2", "Can I use it?"),
        ("2", "Where does it fail?"),
        ("3", "Every (domain, class) pair"),
        ("3", "The worst pairs"),
        ("2", "What next?"),
        ("2", "How was it made?"),
        ("3", "All metrics"),
        ("3", "Training"),
        ("3", "Data"),
        ("3", "Limits"),
        ("3", "How to repeat it"),
        ("3", "Versions and checksums"),
        ("3", "Transferability: α, β, γ"),
    ]
    assert (run.path / "model_card.md").read_text(encoding="utf-8").startswith("# erm:retrain on photos\n")
    assert "<td>pair average</td><td>55.0</td>" in text
    assert "<td>α</td>" not in text and "<td>β</td><td>3.00</td>" in text  # α is undefined
    assert "--second-stage retrain" in text and f"--out &#39;{run.path}&#39;" in text
    assert "Hyperparameters: lr 0.01, weight_decay 0.0." in text
    assert "photos: 80 samples (197 for training, 20 for validation, 20 for test), 2 domains" in text


def test_the_page_over_folds_has_each_unseen_domain_and_the_mean(fold, tmp_path):
    runs = [memory(tmp_path, fold(*of)) for of in ((0, [1, 2], [4, 6]), (1, [3, 4], [5, 5]))]
    text = page_of(folds_document(tmp_path, runs))
    assert "<td>d0</td><td>30.0</td>" in text and "<td>d1</td><td>70.0</td>" in text
    assert '<td class="best">mean</td><td class="best">50.0</td>' in text
    assert "--protocol dg" in text and "--unseen" not in text
    assert "photos: 80 samples, 2 domains, 2 classes." in text  # each fold splits them differently


def test_a_run_without_test_samples_has_a_page(finished):
    none = finished([[0, 0], [0, 0]], totals=[[0, 0], [0, 0]])
    text = page_of(document(none))
    assert "There are no test samples" in text and "Where does it fail?" not in text and "Heat map" not in text


def test_a_run_whose_records_were_removed_has_a_page_without_curves(finished):
    assert ">Training</h3>" not in page_of(document(finished(HITS).knowing(records=[])))


def test_the_page_has_both_tracks_for_every_pair(finished):
    run = finished(HITS, totals=TOTALS, known=[[10, 4], [2, 0]])
    pairs = shown(run.result).pairs
    np.testing.assert_allclose(pairs["known"], [100, 100, 100 / 3, np.nan])
    blocks = document(run).blocks
    (worst,) = [block for block in blocks if isinstance(block, Table) and "training samples" in block.header]
    column = worst.header.index("domain known")
    assert {row[0]: row[column] for row in worst.rows} == {"d0 / c0": "100.0", "d0 / c1": "100.0", "d1 / c0": "33.3"}
    panel = pair_chart(pairs, "training samples").to_dict()
    assert "known" in str(panel) and "known" not in str(pair_chart(shown(finished(HITS).result).pairs, "").to_dict())
    assert "domain known" not in page_of(document(finished(HITS, totals=TOTALS)))


def test_too_many_pairs_are_not_drawn(finished, large):
    run = finished(HITS).knowing(result=large(2, DRAWN // 2 + 1), test=None)
    text = page_of(document(run))
    assert "too many for a heat map" in text and "Heat map:" not in text


def test_the_script_is_cached_and_rebuilt_if_damaged(tmp_path, monkeypatch):
    made = []
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path))
    monkeypatch.setattr(html.vl_convert, "javascript_bundle", lambda text: made.append(text) or "draw(); </script>")
    build = html._vega.__wrapped__
    assert build() == build() == "draw(); <\\/script>" and len(made) == 1
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])
    assert build() == "draw(); <\\/script>" and len(made) == 2


def test_folds_are_pooled_with_their_mean_counts_and_shots(make_result, tmp_path):
    counts = [[[140, 20], [6, 0]], [[141, 22], [8, 0]]]
    tables = [([[9, 1], [2, 0]], [[10, 4], [2, 1]]), ([[8, 0], [1, 0]], [[10, 5], [3, 0]])]
    results = [
        make_result(hits, totals=totals, counts=of, folds=2, fold=k + 1)
        for k, ((hits, totals), of) in enumerate(zip(tables, counts, strict=True))
    ]
    pairs = shown(*results).pairs.set_index(["domain", "class"])
    assert pairs["count"].tolist() == [140, 21, 7, 0] and pairs["shot"].tolist() == ["many", "medium", "few", "zero"]
    assert pairs["hits"].tolist() == [17, 1, 3, 0] and pairs["tested"].tolist() == [20, 9, 5, 1]
    table = cross_validation_table(results).set_index("fold")
    assert table["tested"].tolist()[:3] == [17, 18, 35]
    assert table.loc["pooled", "pair average"] == pytest.approx(100 * (17 / 20 + 1 / 9 + 3 / 5 + 0) / 4)
    each = [100 * (0.9 + 0.25 + 1 + 0) / 4, 100 * (0.8 + 0 + 1 / 3) / 3]
    assert table.loc[[1, 2], "pair average"].tolist() == pytest.approx(each)
    assert table.loc["± over folds", "pair average"] == pytest.approx(abs(each[0] - each[1]) / 2**0.5)
    document = folds_document(tmp_path, [memory(tmp_path, result) for result in results])
    assert document.title == "erm on photos: 2 folds" and "few-shot pairs" in page_of(document)
