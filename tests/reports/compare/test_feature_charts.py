"""The tables that need features, against loops over hand-made ones."""

from dataclasses import replace

import numpy as np
import pytest

from crosstail.reports.compare.feature_charts import (
    ModelFeatures,
    bound_table,
    discrepancy_table,
    feature_charts,
    ratio_table,
)
from crosstail.transfer import TransferabilityGraph


def make(num_classes: int = 3, empty: bool = True) -> ModelFeatures:
    rng = np.random.default_rng(0)
    pairs = [(d, c) for d in range(2) for c in range(num_classes)]
    number = {
        pair: 0 if empty and pair == (0, 0) else 1 if pair == (1, 1) else 4 + 3 * i for i, pair in enumerate(pairs)
    }
    parts = {}
    for split in ("train", "test"):
        rows = [pair for pair in pairs for _ in range(number[pair] if split == "train" else 5)]
        domain, y = np.array(rows).T
        z = rng.normal(size=(len(rows), 4)).astype(np.float32) + y[:, None] + 0.3 * domain[:, None]
        order = rng.permutation(len(rows))
        parts[split] = z[order].astype(np.float32), y[order], domain[order]
    z, y, domain = ({split: part[i] for split, part in parts.items()} for i in range(3))
    sizes = {"num_domains": 2, "num_classes": num_classes}
    graph = TransferabilityGraph.from_features(z["train"], y["train"], domain["train"], **sizes)
    return ModelFeatures("boda", z, y, domain, ("a", "b"), tuple(f"c{c}" for c in range(num_classes)), (100, 20), graph)


def rows_of(seen: ModelFeatures, split: str, d: int, c: int) -> np.ndarray:
    return np.array(
        [z for z, y, e in zip(seen.z[split], seen.y[split], seen.domain[split], strict=True) if (e, y) == (d, c)], float
    )


def test_discrepancy_is_that_of_the_loop() -> None:
    seen = make()
    table = discrepancy_table(seen).set_index(["domain", "class"])
    assert ("a", "c0") not in table.index and len(table) == 5
    test, own, other = (rows_of(seen, *key) for key in (("test", 0, 2), ("train", 0, 2), ("train", 1, 2)))
    row = table.loc[("a", "c2")]
    assert row["mean"] == pytest.approx(np.linalg.norm(test.mean(0) - own.mean(0)))
    assert row["other_mean"] == pytest.approx(np.linalg.norm(test.mean(0) - other.mean(0)))
    assert row["covariance"] == pytest.approx(np.linalg.norm(np.cov(test.T) - np.cov(own.T)))
    assert row["other_covariance"] == pytest.approx(np.linalg.norm(np.cov(test.T) - np.cov(other.T)))
    assert np.isnan(table.loc[("b", "c1"), "covariance"])  # one training sample
    assert np.isnan(table.loc[("b", "c0"), "other_mean"])  # the other domain has none


def test_ratios_are_those_of_the_loop() -> None:
    seen = make()
    table = ratio_table(seen).set_index(["class", "domain", "other"])
    assert len(table) == 4  # two classes that both domains have, in both directions
    test, own, other = (rows_of(seen, *key) for key in (("test", 1, 2), ("train", 1, 2), ("train", 0, 2)))
    row = table.loc[("c2", "b", "a")]
    assert row["counts"] == len(other) / len(own)
    near, far = (np.linalg.norm(test.mean(0) - part.mean(0)) for part in (own, other))
    assert row["distances"] == pytest.approx(near / far)


def test_the_bound_is_below_the_loss_and_needs_every_pair() -> None:
    table = bound_table([make(empty=False)])
    assert table["ν"].tolist() == [0, 1] and (table["empirical"] >= table["theoretical"] - 1e-6).all()
    assert (table["theoretical"] > 0).all()
    assert bound_table([make()]).empty


def test_two_models_stand_side_by_side() -> None:
    charts = feature_charts([make(), replace(make(), name="erm")])
    assert len(charts) == 5 and len(charts[0].drawing.to_dict()["concat"]) == 2
    for chart in charts:
        assert chart.title and chart.alternative and chart.drawing.to_dict()


@pytest.mark.parametrize("shots", [(100, 0), (100, 99)])
def test_without_few_shot_pairs_or_others_no_ratio_is_stated(shots: tuple[int, int]) -> None:
    titles = [chart.title for chart in feature_charts([replace(make(), shots=shots)])]
    assert len(titles) == 3 and not any("nan" in title for title in titles)
