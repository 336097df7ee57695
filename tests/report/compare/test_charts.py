"""The tables behind the figures, and the sentences that are their titles, against hand-made runs."""

import math

import pandas as pd
import pytest

from crosstail.report.compare.charts import (
    LABELLED,
    correlation,
    counts_figure,
    curve_figure,
    curve_table,
    gain_figure,
    gain_table,
    separation_figure,
    shortlist,
    transfer_figure,
)
from crosstail.report.compare.read_runs import read_runs
from crosstail.report.compare.tables import entries, summary_table, transfer_table


@pytest.fixture
def runs(make_run, tmp_path):
    make_run("e0", [[10, 6], [4, 0]], alpha=3.0)
    make_run("e1", [[8, 6], [2, 0]], seed=1, alpha=2.5)
    make_run("b0", [[10, 8], [6, 4]], algorithm="boda", alpha=1.0)
    make_run("c0", [[10, 9], [9, 9]], algorithm="coral", alpha=0.5)
    return read_runs([tmp_path])


def test_gain_is_over_the_mean_of_the_baseline(runs):
    found, _ = entries(runs.chosen)
    table = gain_table(found, "erm")
    assert table["boda"].tolist() == pytest.approx([10, 20, 30, 40])
    assert table["shot"].tolist() == ["many", "medium", "few", "zero"]
    figure = gain_figure("gain", "photos", table, "erm", "boda")
    assert figure.title == (
        "photos: boda gains over erm on 4 of 4 pairs, loses on 0; few- and zero-shot pairs change by +35.0 points on "
        "average"
    )
    scale = figure.chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-90, 90]  # the largest gain of any method; the colours change at zero


def test_many_classes_are_points_that_can_be_searched(runs):
    found, _ = entries(runs.chosen)
    table = gain_table(found, "erm")
    many = pd.concat([table.assign(**{"class": f"c{i}"}) for i in range(LABELLED + 1)])
    names = [param["name"] for param in gain_figure("gain", "photos", many, "erm", "boda").chart.to_dict()["params"]]
    assert "find" in names and "method_gain" in names


def test_shortlist_has_the_baseline_and_boda_first(runs):
    summary = summary_table(runs.chosen)
    assert shortlist(summary, "photos", "erm") == ["erm", "boda", "coral"]
    assert shortlist(summary, "photos", "erm", 2) == ["erm", "boda"]


def test_curves_are_means_and_ranges_without_the_untrained_model(runs):
    found, _ = entries(runs.chosen)
    table = curve_table(found, ["erm"])
    assert table["at"].tolist() == [5, 10]
    assert table[["mean", "min", "max"]].iloc[0].tolist() == pytest.approx([45, 40, 50])
    assert "erm ends highest on validation, at 45.0 %" in curve_figure("c", "photos", table, ["erm"]).title


def test_correlation_is_that_of_all_models(runs):
    figure = separation_figure("s", "photos", transfer_table(runs.table), ["erm", "boda"])
    x, y = [4.0, 4.5, 6.0, 6.5], [50, 40, 70, 92.5]
    expected = pd.Series(x).corr(pd.Series(y))
    assert figure.title == f"photos: over 4 models, (β + γ) − α goes with accuracy (r = {expected:+.2f})"


def test_methods_are_ordered_by_how_close_the_domains_are(runs):
    figure = transfer_figure("t", "photos", transfer_table(runs.chosen))
    assert "coral has the same class of two domains closest" in figure.title and "0.12" in figure.title


def test_a_correlation_needs_points_that_differ():
    assert correlation(pd.Series([1, 2, 4.0]), pd.Series([2, 4, 8.0])) == pytest.approx(1)
    for x, y in (([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5]), ([1, 2], [1, 2])):
        assert math.isnan(correlation(pd.Series(x), pd.Series(y)))


def test_label_distribution_says_what_is_rare(runs):
    found, _ = entries(runs.chosen)
    title = "photos: pairs have 7 to 150 training samples, and 1 of 4 have none"
    figure = counts_figure("l", found[0])
    assert figure.title == title and figure.chart.to_dict()["facet"]["sort"] == ["d0", "d1"]
