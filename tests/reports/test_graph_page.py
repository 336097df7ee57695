"""The page that explains a transferability graph, on features whose neighbours are known."""

import numpy as np
import pytest

from crosstail.reports.document.model import Chart, Table
from crosstail.reports.graph_chart import NamedGraph, graph_chart
from crosstail.reports.graph_page import graph_document, neighbours, verdict
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.statistics import Estimate


def model(name: str, *places: tuple[int, int, float]) -> NamedGraph:
    """One sample at a place on a line for each (domain, class, place)."""
    domain, y, z = (np.array(values) for values in zip(*places, strict=True))
    graph = TransferabilityGraph.from_features(z[:, None], y, domain, num_domains=2, num_classes=3)
    return NamedGraph(name, graph, ["day", "night"], ["cat", "dog", "owl"])


ASTRAY = model("erm", (0, 0, 0.0), (1, 0, 9.0), (0, 1, 10.0), (1, 1, 11.0), (0, 2, 50.0))


def test_the_closest_pair_of_another_domain_tells_whether_a_class_transfers():
    table = neighbours(ASTRAY).set_index("pair")
    assert "day / owl" not in table.index  # owls are in one domain only
    assert table.loc["day / cat"][["closest", "distance", "same"]].tolist() == ["night / cat", 9.0, True]
    assert table.loc["night / cat"][["closest", "distance", "own", "same"]].tolist() == ["day / dog", 1.0, 9.0, False]


def blocks(*models):
    drawing = graph_chart(models[0].graph.nodes(models[0].domains, models[0].classes))
    return graph_document("erm on photos", models, Chart("graph", "", drawing, "Points")).blocks


def test_the_page_says_what_is_close_and_lists_what_is_not():
    found = blocks(ASTRAY)
    assert "2 of 4 pairs" in found[0].text
    tables = [block for block in found if isinstance(block, Table)]
    assert [row[0] for row in tables[0].rows] == ["night / cat", "day / dog"]
    assert [row[0] for row in tables[-1].rows] == ["α", "β", "γ", "δ", "α / γ"]


def test_a_graph_of_some_pairs_says_so_and_has_standard_errors():
    some = TransferabilityGraph(
        ASTRAY.graph.matrix,
        ASTRAY.graph.pairs,
        np.full((2, 500), 3),
        Estimate(ASTRAY.graph.statistics, (0.04, 0.1, 0.2)),
    )
    found = blocks(ASTRAY._replace(graph=some))
    assert any("5 of 1,000 pairs" in str(block) for block in found)
    table = [block for block in found if isinstance(block, Table)][-1]
    assert "± 0.04" in table.rows[0][1] and "standard error" in table.note


def test_two_models_stand_beside_each_other():
    good = model("boda", (0, 0, 0.0), (1, 0, 1.0), (0, 1, 10.0), (1, 1, 11.0))
    found = blocks(ASTRAY, good)
    assert "erm: for 2 of 4" in found[0].text and "boda: for 4 of 4" in found[0].text
    table = [block for block in found if isinstance(block, Table)][-1]
    assert (
        table.header[1:3] == ["erm", "boda"] and table.rows[0][2] == "1.00" and table.rows[3][1:3] == ["0.00", "0.00"]
    )


def test_without_a_class_in_two_domains_nothing_can_transfer():
    found = blocks(model("erm", (0, 0, 0.0), (1, 1, 9.0)))
    assert "no class occurs in two domains" in found[0].text


def spread_out(shift: float) -> NamedGraph:
    """Two classes in two domains with much noise in 60 dimensions; the domains are this far apart."""
    rng = np.random.default_rng(0)
    domain, y = np.divmod(np.arange(400) % 4, 2)
    z = rng.normal(size=(400, 60))
    z[:, 0] += 6.0 * y
    z[:, 1] += shift * domain
    graph = TransferabilityGraph.from_features(z.astype(np.float32), y, domain, num_domains=2, num_classes=2)
    return NamedGraph("erm", graph, ["day", "night"], ["cat", "dog"])


@pytest.mark.parametrize(("shift", "words"), [(0.0, "classes transfer well"), (60.0, "little transfers")])
def test_the_number_has_a_verdict_that_noise_within_pairs_does_not_hide(shift, words):
    one = spread_out(shift)
    statistics = one.graph.statistics
    if shift == 0.0:
        assert statistics.alpha / statistics.gamma > 0.75  # alone, it looks as if little transferred
    assert verdict(one.graph).endswith(f"{words}.")
    assert words in blocks(one)[0].text


def test_each_class_has_its_name_at_the_centre_of_its_pairs():
    nodes = ASTRAY.graph.nodes(ASTRAY.domains, ASTRAY.classes)
    layers = graph_chart(nodes).to_dict()["layer"]
    (text,) = [one for one in layers if one["mark"]["type"] == "text"]
    assert text["encoding"]["text"]["field"] == "class"
    aggregate = next(step for step in text["transform"] if "aggregate" in step)
    assert aggregate["groupby"] == ["class"] and {one["op"] for one in aggregate["aggregate"]} == {"mean"}
