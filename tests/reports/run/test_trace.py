"""How pairs moved during training: each table against hand-made records."""

import msgspec
import numpy as np
import pytest

from crosstail.reports.document import html
from crosstail.reports.run.page import run_document
from crosstail.reports.run.tables import transfer_curve
from crosstail.reports.run.trace import moving_nodes, selected, trace_charts, traced
from crosstail.training.result import Trace

POINTS = np.array([[3.0, 0.0], [-1.0, 2.0], [-2.0, -2.0]])  # three pairs of the four have training samples
HITS = [[9, 1], [3, 0]]


def with_traces(run, *traces):
    """The result and records of a run, with these traces in the first records."""
    records = list(run.records)
    for i, trace in enumerate(traces):
        records[i] = msgspec.structs.replace(records[i], trace=trace)
    return run.result, records


def trace(alpha, points=POINTS):
    return Trace(alpha=alpha, beta=3.0, gamma=4.0, points=np.asarray(points).tolist())


def test_the_curve_has_what_is_known(finished):
    table = transfer_curve(with_traces(finished(HITS), trace(None), trace(2.0))[1])
    assert table[["at", "statistic", "distance"]].to_numpy().tolist() == [
        [0, "β", 3.0],
        [0, "γ", 4.0],
        [5, "α", 2.0],
        [5, "β", 3.0],
        [5, "γ", 4.0],
    ]


def test_layouts_are_rotated_and_mirrored_but_not_stretched(finished):
    turn = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]])
    mirror = np.diag([1.0, -1.0])
    result, records = with_traces(finished(HITS), trace(1, 0.5 * POINTS @ mirror @ turn), trace(2, POINTS))
    nodes = moving_nodes(result, traced(records))
    assert nodes[["domain", "class", "count"]].to_numpy().tolist() == [
        ["d0", "c0", 150],
        ["d0", "c1", 40],
        ["d1", "c0", 7],
    ]
    np.testing.assert_allclose(nodes[["x1", "y1"]], POINTS)
    np.testing.assert_allclose(nodes[["x0", "y0"]], 0.5 * POINTS, atol=1e-3)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_layouts_are_aligned_to_that_of_the_selected_step(finished, place):
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    layouts = [POINTS @ quarter @ quarter, POINTS @ quarter, POINTS]
    # α, β, γ of all evaluations are equal: they do not tell which one was selected.
    result, records = with_traces(finished(HITS), *(trace(2.0, layout) for layout in layouts))
    result = msgspec.structs.replace(result, selected_steps=[records[place].step, 10])
    assert selected(result, records) == place
    nodes = moving_nodes(result, records)
    for i in range(3):
        np.testing.assert_allclose(nodes[[f"x{i}", f"y{i}"]], layouts[place], atol=1e-3)


def test_a_trace_that_began_late_starts_at_its_nearest_evaluation(finished):
    result, records = with_traces(finished(HITS), trace(2.0), trace(2.0), trace(2.0))
    assert selected(result, [records[2]]) == 0 and selected(result, [records[0], records[2]]) == 0


def test_titles_say_what_happened(finished):
    result, records = with_traces(finished(HITS), trace(3.0), trace(2.0))
    curve, graph = trace_charts(result, records)
    assert "converged" in curve.title and "from 0.75 to 0.50" in curve.title
    assert "from 3.00 to 3.00" in graph.title
    spec = graph.drawing.to_dict()
    (slider,) = [p for p in spec["params"] if isinstance(p.get("bind"), dict) and p["bind"]["input"] == "range"]
    assert (slider["bind"]["min"], slider["bind"]["max"], slider["value"]) == (0, 1, 1)
    assert '["step 0: \\u03b1 3.00, \\u03b2 3.00, \\u03b3 4.00", "step 5: ' in spec["title"]["text"]["expr"]
    assert trace_charts(result, records[2:]) == []


def test_one_domain_has_charts_without_alpha(finished):
    run = finished([[9, 1]], totals=[[10, 10]], counts=[[5, 5]])
    none = Trace(alpha=None, beta=None, gamma=None, points=[(0.0, 0.0), (0.0, 0.0)])
    assert [chart.title for chart in trace_charts(*with_traces(run, none, none))] == [
        "Distances between pairs during training",
        "The pairs during training",
    ]


def test_the_page_of_a_run_has_both_and_is_small_for_the_largest_benchmark(finished):
    shape = 6, 345
    run = finished(np.full(shape, 4), totals=np.full(shape, 5), counts=np.full(shape, 9))
    rng = np.random.default_rng(0)
    records = [
        msgspec.structs.replace(run.records[1], step=step, trace=trace(1.0, (20 * rng.normal(size=(2070, 2))).round(3)))
        for step in range(11)
    ]
    text = html.render(run_document(run.knowing(records=records), None))
    assert text.count(">The same class in two domains") == 1 and ">Distances between classes" in text
    assert len(text) - len(html._vega()) < 2_500_000
