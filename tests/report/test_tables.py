"""Each table against hand-made runs."""

import math
from typing import Any

import numpy as np
import pytest

from crosstail.report.tables import METRICS, curve_table, gain_table, label_table, summary_table


def result(seed: int, hits: list[list[int]], alpha: float | None = 2.0) -> dict[str, Any]:
    totals = [[10, 10], [10, 10]]
    accuracy = np.divide(hits, totals)
    return {
        "spec": {"seed": seed},
        "domains": ["photo", "sketch"],
        "classes": ["dog", "cat"],
        "counts": [[200, 50], [5, 0]],
        "test": {
            "average": float(accuracy.mean()),
            "worst_domain": float(accuracy.mean(1).min()),
            "pair_average": float(accuracy.mean()),
            "worst_pair": float(accuracy.min()),
            "shots": dict(zip(("many", "medium", "few", "zero"), accuracy.ravel().tolist(), strict=True)),
            "hits": hits,
            "totals": totals,
        },
        "transferability": {"alpha": alpha, "beta": 3.0, "gamma": 4.0},
    }


def test_summary_has_mean_spread_and_the_gain_of_the_same_seed() -> None:
    base = [result(0, [[10, 5], [5, 0]]), result(1, [[10, 5], [5, 4]])]
    # In the other order: the gain must be paired by seed, not by place.
    better = [result(1, [[10, 6], [5, 4]]), result(0, [[10, 9], [5, 0]])]
    table = summary_table({"erm": base, "boda": better}, baseline="erm").set_index(["method", "metric"])
    row = table.loc[("boda", "pair average")]
    assert row["runs"] == 2
    assert row["mean"] == pytest.approx((62.5 + 60) / 2)
    assert row["std"] == pytest.approx(np.std([62.5, 60], ddof=1))
    assert row["gain"] == pytest.approx((2.5 + 10) / 2)
    assert row["gain_std"] == pytest.approx(np.std([2.5, 10], ddof=1))
    assert table.loc[("boda", "medium"), "mean"] == pytest.approx(75)
    assert table.loc[("erm", "α"), "mean"] == pytest.approx(2.0)
    assert (table.loc["erm", "gain"] == 0).all()
    assert len(table) == 2 * len(METRICS)


def test_summary_of_one_seed_has_no_spread_and_of_an_empty_group_no_mean() -> None:
    table = summary_table({"erm": [result(0, [[1, 1], [1, 1]], alpha=None)]}, "erm").set_index("metric")
    assert math.isnan(table.loc["average", "std"])
    assert math.isnan(table.loc["α", "mean"])


def test_gain_is_the_difference_of_mean_accuracies_per_pair() -> None:
    base = [result(0, [[10, 5], [5, 0]]), result(1, [[8, 5], [5, 0]])]
    other = [result(0, [[9, 7], [5, 3]]), result(1, [[9, 7], [5, 3]])]
    table = gain_table(base, other).set_index(["domain", "class"])
    assert table["gain"].tolist() == pytest.approx([0, 20, 0, 30])
    assert table.loc[("sketch", "dog"), "count"] == 5


def test_pair_without_test_samples_has_no_gain() -> None:
    base, other = result(0, [[10, 5], [5, 0]]), result(0, [[10, 5], [5, 0]])
    for run in (base, other):
        run["test"]["totals"] = [[10, 10], [10, 0]]
    assert math.isnan(gain_table([base], [other])["gain"].iloc[3])


def test_labels_are_listed_domain_by_domain() -> None:
    table = label_table([[1, 2], [3, 4]], ["a", "b"], ["x", "y"])
    assert table.to_numpy().tolist() == [["a", "x", 1], ["a", "y", 2], ["b", "x", 3], ["b", "y", 4]]


def test_curve_is_the_mean_and_range_over_seeds() -> None:
    def run(values: list[float]) -> list[dict[str, Any]]:
        return [{"stage": 1, "step": s, "validation": {"pair_average": v}} for s, v in enumerate(values)]

    table = curve_table({"erm": [run([0.1, 0.5]), run([0.3, 0.7])]})
    assert table["mean"].tolist() == pytest.approx([20, 60])
    assert table["min"].tolist() == pytest.approx([10, 50])
    assert table["max"].tolist() == pytest.approx([30, 70])
