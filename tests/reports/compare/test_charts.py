"""The tables behind the charts, and the findings in their titles, against hand-made runs."""

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from crosstail.metrics import PairAccuracy, find
from crosstail.reports.compare.charts import (
    LABELLED,
    correlation,
    counts_chart,
    curve_chart,
    curve_tables,
    separation_chart,
    shortlist,
    trace_chart,
    transfer_chart,
)
from crosstail.reports.compare.gain_charts import gain_chart, gain_table
from crosstail.reports.compare.method_runs import method_runs
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.tables import summary_table, transfer_table
from crosstail.training.folder import RunFolder
from crosstail.training.result import Averaged, SplitAccuracy, Trace

ACCURACY = find("accuracy")


@pytest.fixture
def runs(make_run, tmp_path):
    make_run("e0", [[10, 6], [4, 0]], alpha=3.0)
    make_run("e1", [[8, 6], [2, 0]], seed=1, alpha=2.5)
    make_run("b0", [[10, 8], [6, 4]], algorithm="boda", alpha=1.0)
    make_run("c0", [[10, 9], [9, 9]], algorithm="coral", alpha=0.5)
    return read_runs([tmp_path])


def test_gain_is_over_the_mean_of_the_baseline(runs):
    found, _ = method_runs(runs.chosen)
    table = gain_table(found, "erm")
    own = table[table["method"] == "boda"]
    assert own["gain"].tolist() == pytest.approx([10, 20, 30, 40])
    assert own["shot"].tolist() == ["many", "medium", "few", "zero"]
    title = gain_chart("gain", "photos", table, "erm", "boda", ACCURACY).title
    assert all(part in title for part in ("boda", "erm", "4 (", "of 4 pairs", "+35.0 points"))


def test_a_gain_has_a_colour_only_beyond_its_interval(runs):
    found, _ = method_runs(runs.chosen)
    table = gain_table(found, "erm").set_index(["method", "domain", "class"])
    small, large = table.loc[("boda", "d0", "c0")], table.loc[("coral", "d1", "c1")]
    assert small["low"] < 0 < small["gain"] < small["high"] and small["sure"] == 0
    assert large["gain"] == 90 and large["sure"] == large["low"] > 0
    spec = gain_chart("gain", "photos", table.reset_index(), "erm", "boda", ACCURACY).drawing.to_dict()
    colour = spec["layer"][0]["encoding"]["color"]
    assert colour["field"] == "sure" and colour["scale"]["domain"][-1] == 90  # the largest gain of any method
    assert "format(datum.gain" in spec["layer"][1]["transform"][-1]["calculate"]


def test_many_classes_are_points_that_can_be_searched(runs):
    found, _ = method_runs(runs.chosen)
    table = gain_table(found, "erm")
    many = pd.concat([table.assign(**{"class": f"c{i}"}) for i in range(LABELLED + 1)])
    drawing = gain_chart("gain", "photos", many, "erm", "boda", ACCURACY).drawing
    names = [param["name"] for param in drawing.to_dict()["params"]]
    assert "find" in names and "method_gain" in names


def test_shortlist_has_the_baseline_and_boda_first(runs):
    summary = summary_table(method_runs(runs.chosen)[0])
    assert shortlist(summary, "photos", "erm") == ["erm", "boda", "coral"]
    assert shortlist(summary, "photos", "erm", 2) == ["erm", "boda"]


def test_curves_are_means_and_ranges_without_the_untrained_model(runs):
    found, _ = method_runs(runs.chosen)
    table, traces = curve_tables(found, ["erm"])
    assert table["at"].tolist() == [5, 10]
    assert table[["mean", "min", "max"]].iloc[0].tolist() == pytest.approx([45, 40, 50])
    assert "erm ends best on validation, at 45.0 %" in curve_chart("c", "photos", table, ["erm"], "pair_average").title
    assert traces.empty


def points(separation, accuracy, of="erm"):
    return pd.DataFrame({"of": of, "space": "mlp", "seed": 0, "separation": separation, "accuracy": accuracy})


RISING = [50, 52, 55, 58, 70, 75, 80, 85, 92.5, 93]
X = [4.0, 4.5, 5.0, 5.2, 6.0, 6.1, 6.5, 6.7, 7.0, 7.1]


def test_the_title_claims_a_relation_only_if_its_interval_excludes_zero():
    found = separation_chart("s", "photos", points(X, RISING)).title
    assert "over 10 models of erm, accuracy rises with" in found
    assert f"r = {pd.Series(X).corr(pd.Series(RISING)):+.2f}" in found
    assert "not clearly" in separation_chart("s", "photos", points(X, [70, 50] * 5)).title


def test_models_of_different_features_are_not_correlated_with_each_other():
    """Each method rises, but the one with the largest distances is the least accurate: over all, accuracy falls."""
    other = points([x + 50 for x in X], [y - 40 for y in RISING], "frozen:blend")
    both = pd.concat([points(X, RISING), other])
    assert both["separation"].corr(both["accuracy"]) < 0
    chart = separation_chart("s", "photos", both)
    assert "over 10 models of erm, accuracy rises with" in chart.title and "falls" not in chart.title
    assert "10 models of frozen:blend: r = +0." in chart.note
    few = points([x + 50 for x in X[:9]], RISING[:9], "boda")  # too few, so not shown
    alone = separation_chart("s", "photos", pd.concat([points(X, RISING), few]))
    drawn = {row["of"] for rows in alone.drawing.to_dict()["datasets"].values() for row in rows}
    assert drawn == {"erm"} and "boda" not in alone.note


@pytest.mark.parametrize(("x", "y"), [([1] * 10, RISING), (X, [5] * 10), (X[:9], RISING[:9])])
def test_a_correlation_needs_several_models_that_differ(x, y):
    assert separation_chart("s", "photos", points(x, y)) is None


@pytest.mark.parametrize(("x", "y"), [([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]), ([1, 2, 3, 4, 5], [5] * 5), ([1, 2], [1, 2])])
def test_points_are_correlated_if_they_are_several_and_differ(x, y):
    assert correlation(pd.Series(x), pd.Series(y)) is None


def test_methods_are_ordered_by_how_close_the_domains_are(runs):
    chart = transfer_chart("t", "photos", transfer_table(runs.chosen))
    assert "coral has the same class closest" in chart.title and "0.12" in chart.title
    assert "Left out" not in chart.note


def test_methods_with_other_features_are_not_in_the_chart(make_run, tmp_path):
    for k, method in enumerate(("erm", "boda", "frozen")):
        make_run(method, [[10, 6], [4, 0]], algorithm=method, alpha=3.0 - k, tune="none", backbone="efficientnet_lite0")
    table = transfer_table(read_runs([tmp_path]).chosen)
    chart = transfer_chart("t", "photos", table)
    assert "boda has the same class closest" in chart.title
    assert "Left out, as their features are others: fr" in chart.note
    assert transfer_chart("t", "photos", table[table["method"].str.startswith(("erm", "frozen"))].iloc[1:]) is None


def test_label_distribution_says_what_is_rare(runs):
    found, _ = method_runs(runs.chosen)
    title = "photos: pairs have 7 to 150 training samples, and 1 of 4 have none"
    chart = counts_chart("l", found[0])
    assert chart.title == title and chart.drawing.to_dict()["facet"]["sort"] == ["d0", "d1"]


@pytest.mark.parametrize("classes", [60, 1000])
def test_many_classes_are_ranked_and_above_150_shown_in_groups(make_run, tmp_path, classes):
    counts = np.random.default_rng(0).integers(0, 300, (2, classes))
    make_run("a", np.zeros_like(counts), totals=np.ones_like(counts), counts=counts)
    found, _ = method_runs(read_runs([tmp_path]).chosen)
    order = sorted(range(classes), key=lambda c: -counts[:, c].sum())
    number = min(classes, 150)
    sizes = [classes // number + (i < classes % number) for i in range(number)]
    starts = [sum(sizes[:i]) for i in range(number)]
    chart = counts_chart("l", found[0])
    drawing = chart.drawing.to_dict()
    names = drawing["spec"]["encoding"]["x"]["sort"]
    assert names[:2] == ([f"c{c}" for c in order[:2]] if classes == 60 else ["1 to 7", "8 to 14"])
    (shown,) = drawing["datasets"].values()
    for d in range(2):
        drawn = {row["class"]: row["count"] for row in shown if row["domain"] == f"d{d}"}
        expected = [np.mean([counts[d, c] for c in order[a : a + n]]) for a, n in zip(starts, sizes, strict=True)]
        np.testing.assert_allclose([drawn[name] for name in names], expected)
    assert ("1,000 classes" in chart.note) == (classes == 1000)


def test_of_many_pairs_a_chart_shows_a_sample_and_says_so(make_run, tmp_path):
    for method in ("erm", "boda"):
        hits = np.random.default_rng(len(method)).integers(0, 5, (3, 1000))
        make_run(method, hits, totals=np.full_like(hits, 5), counts=np.full_like(hits, 9), algorithm=method)
    found, _ = method_runs(read_runs([tmp_path]).chosen)
    chart = gain_chart("g", "photos", gain_table(found, "erm"), "erm", "boda", ACCURACY)
    assert "2,000 of 3,000 pairs" in chart.note and "of 3000 pairs" in chart.title
    assert max(map(len, chart.drawing.to_dict()["datasets"].values())) == 2000


def test_traces_are_means_over_the_runs_of_a_method(make_run, tmp_path):
    for seed, alpha in enumerate((1.0, 3.0)):
        folder = RunFolder(make_run(str(seed), [[10, 6], [4, 0]], seed=seed))
        points = [(0.0, 0.0)] * 3
        folder.append_record(
            replace(folder.records()[-1], step=20, trace=Trace(alpha=alpha, beta=None, gamma=4.0, points=points))
        )
    found, _ = method_runs(read_runs([tmp_path]).chosen)
    _, traces = curve_tables(found, ["erm"])
    assert traces.to_numpy().tolist() == [["erm", 20, "α", 2.0], ["erm", 20, "γ", 4.0]]
    assert "erm" in (title := trace_chart("t", "photos", traces, ["erm"]).title) and "0.50" in title


def test_curves_of_averaged_runs_show_the_averaged_weights(make_run, tmp_path):
    folder = RunFolder(make_run("run", [[10, 6], [4, 0]], average="moving"))
    record = folder.records()[-1]
    better = SplitAccuracy.of(PairAccuracy(*(np.full((2, 2), 10),) * 2))
    folder.append_record(replace(record, step=20, averaged=Averaged(validation=better, test=better)))
    found, _ = method_runs(read_runs([tmp_path]).chosen)
    table, _ = curve_tables(found, [found[0].method])
    assert found[0].method == "erm, moving average" and table["mean"].tolist() == pytest.approx([50, 50, 100])
