"""Two graphs in one scale, against hand-made ones."""

import numpy as np
import pytest

from crosstail.reports.graph_chart import NamedGraph, aligned_nodes, side_by_side
from crosstail.transfer import TransferabilityGraph

PLACES = np.array([[0.0, 0.0], [6.0, 0.0], [1.0, 2.0], [7.0, 3.0]])  # of two classes in two domains


def model(name: str, places: np.ndarray, classes: tuple[str, ...] = ("x", "y")) -> NamedGraph:
    matrix = np.linalg.norm(places[:, None] - places[None], axis=2)
    pairs = np.array([[d, c] for d in range(2) for c in range(2)])[: len(places)]
    counts = np.zeros((2, 2), int)
    counts[tuple(pairs.T)] = 5
    return NamedGraph(name, TransferabilityGraph(matrix, pairs, counts), ("p", "q"), classes)


def test_the_second_picture_lies_as_the_first_does() -> None:
    second = model("b", PLACES * [1, 5])
    one, other = (nodes[["x", "y"]].to_numpy() for nodes in aligned_nodes(model("a", PLACES), second))
    # Of all turns and mirrorings the nearest is the one that makes this product symmetric and not negative.
    product = other.T @ one
    np.testing.assert_allclose(product, product.T, atol=1e-6)
    assert (np.linalg.eigvalsh(product) >= 0).all()
    distances = np.linalg.norm(other[:, None] - other[None], axis=2)
    np.testing.assert_allclose(distances, second.graph.matrix, atol=1e-2)


def test_pictures_of_other_pairs_are_left_as_they_are() -> None:
    second = model("b", PLACES, ("x", "z"))
    _, other = aligned_nodes(model("a", -PLACES[:, ::-1]), second)
    np.testing.assert_allclose(other[["x", "y"]], second.graph.layout())


def test_both_have_the_scale_of_the_larger() -> None:
    charts = side_by_side(model("a", PLACES), model("b", 2 * PLACES)).drawing.to_dict()["concat"]
    domains = [part["encoding"][axis]["scale"]["domain"] for c in charts for part in c["layer"] for axis in "xy"]
    (reach,) = {tuple(domain) for domain in domains}
    assert reach[1] > np.abs(2 * (PLACES - PLACES.mean(0))).max() / 1.5
    assert [chart["title"] for chart in charts] == ["a: α 2.70, β 6.04, γ 6.50", "b: α 5.40, β 12.08, γ 13.00"]


@pytest.mark.parametrize(
    ("places", "title"),
    [
        (3 * PLACES, "a and b align classes across domains equally well: α / γ 0.42"),
        (PLACES * [1, 2], "a aligns classes across domains better than b: α / γ 0.42 against 0.65"),
        (PLACES * [1, 0.5], "b aligns classes across domains better than a: α / γ 0.26 against 0.42"),
        (PLACES[:2], "a and b: no class occurs in two domains, so α / γ is undefined"),
    ],
)
def test_the_title_says_which_aligns_classes_better(places: np.ndarray, title: str) -> None:
    assert side_by_side(model("a", PLACES), model("b", places)).title == title
