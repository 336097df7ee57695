"""How pairs moved during training: each table against hand-made records."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosstail.report import page as page_module
from crosstail.report.compare.page import write_report
from crosstail.report.compare.read_runs import read_runs
from crosstail.report.compare.tables import entries
from crosstail.report.run.page import write_page
from crosstail.report.run.tables import transfer_curve
from crosstail.report.run.trace import kept, method_curve, moving_nodes, trace_figures
from crosstail.training.folder import RunFolder

POINTS = np.array([[3.0, 0.0], [-1.0, 2.0], [-2.0, -2.0]])  # three pairs of the four have training samples
HITS = [[9, 1], [3, 0]]


def traced(folder: Path, *traces: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Give the records of a run these traces, and return its result and records."""
    file = folder / "records.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    for record, trace in zip(records, traces, strict=False):
        record["trace"] = trace
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return RunFolder(folder).read_json("result.json"), records


def trace(alpha: float | None, points: Any = POINTS) -> dict[str, Any]:
    return {"alpha": alpha, "beta": 3.0, "gamma": 4.0, "points": np.asarray(points).tolist()}


def test_the_curve_has_what_is_known(make_run: Callable[..., Path]) -> None:
    table = transfer_curve(*traced(make_run("run", HITS), trace(None), trace(2.0)))
    assert table[["at", "statistic", "distance"]].to_numpy().tolist() == [
        [0, "β", 3.0],
        [0, "γ", 4.0],
        [5, "α", 2.0],
        [5, "β", 3.0],
        [5, "γ", 4.0],
    ]


def test_pictures_are_turned_and_mirrored_but_not_stretched(make_run: Callable[..., Path]) -> None:
    turn = np.array([[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]])
    mirror = np.diag([1.0, -1.0])
    nodes = moving_nodes(*traced(make_run("run", HITS), trace(1, 0.5 * POINTS @ mirror @ turn), trace(2, POINTS)))
    assert nodes[["domain", "class", "count"]].to_numpy().tolist() == [
        ["d0", "c0", 150],
        ["d0", "c1", 40],
        ["d1", "c0", 7],
    ]
    np.testing.assert_allclose(nodes[["x1", "y1"]], POINTS)
    np.testing.assert_allclose(nodes[["x0", "y0"]], 0.5 * POINTS, atol=1e-3)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_pictures_are_turned_to_that_of_the_model_which_was_kept(make_run: Callable[..., Path], place: int) -> None:
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    pictures = [POINTS @ quarter @ quarter, POINTS @ quarter, POINTS]
    traces = [trace(2.0 if i == place else 1.0, picture) for i, picture in enumerate(pictures)]
    result, records = traced(make_run("run", HITS, alpha=2.0), *traces)
    assert kept(result, records) == place
    nodes = moving_nodes(result, records)
    for i in range(3):
        np.testing.assert_allclose(nodes[[f"x{i}", f"y{i}"]], pictures[place], atol=1e-3)


def test_titles_say_what_happened(make_run: Callable[..., Path]) -> None:
    result, records = traced(make_run("run", HITS), trace(3.0), trace(2.0))
    curve, graph = trace_figures(result, records)
    assert "drew together" in curve.title and "from 0.75 to 0.50" in curve.title
    assert "from 3.00 to 3.00 apart" in graph.title
    spec = graph.chart.to_dict()
    (slider,) = [p for p in spec["params"] if isinstance(p.get("bind"), dict) and p["bind"]["input"] == "range"]
    assert (slider["bind"]["min"], slider["bind"]["max"], slider["value"]) == (0, 1, 1)
    assert '["step 0: \\u03b1 3.00, \\u03b2 3.00, \\u03b3 4.00", "step 5: ' in spec["title"]["text"]["expr"]
    assert trace_figures(result, records[2:]) == []


def test_one_domain_has_figures_without_alpha(make_run: Callable[..., Path]) -> None:
    folder = make_run("run", [[9, 1]], totals=[[10, 10]], counts=[[5, 5]])
    none = {"alpha": None, "beta": None, "gamma": None, "points": [[0.0, 0.0], [0.0, 0.0]]}
    figures = trace_figures(*traced(folder, none, none))
    assert [figure.title for figure in figures] == [
        "Distances between pairs during training",
        "The pairs during training",
    ]


def test_methods_are_means_over_the_seeds_that_have_a_trace(make_run: Callable[..., Path], tmp_path: Path) -> None:
    for seed, alpha in enumerate((1.0, 2.0)):
        traced(make_run(f"erm {seed}", HITS, algorithm="erm", seed=seed, alpha=alpha), trace(alpha))
    make_run("erm 2", HITS, algorithm="erm", seed=2)
    traced(make_run("boda", [[9, 2], [3, 1]], algorithm="boda"), trace(0.5))
    runs = read_runs([tmp_path])
    found, _ = entries(runs.chosen)
    table = method_curve(found, ["erm", "boda"]).set_index(["method", "statistic"])["distance"]
    assert table["erm", "α"] == 1.5 and table["boda", "α"] == 0.5 and len(table) == 6
    assert method_curve(found[:0], ["erm"]).empty
    write_report(tmp_path / "report", runs, "erm", files=False)
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "photos: in training, boda draws a class closest together, to α / γ 0.12" in text


def test_the_page_of_a_run_has_both_and_is_small_for_the_largest_benchmark(make_run: Callable[..., Path]) -> None:
    shape = 6, 345
    folder = make_run("run", np.full(shape, 4), totals=np.full(shape, 5), counts=np.full(shape, 9))
    rng = np.random.default_rng(0)
    traced(folder, *(trace(1.0, (20 * rng.normal(size=(2070, 2))).round(3)) for _ in range(11)))
    write_page(folder, [folder])
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.count("<h2>The same class of two domains") == 1 and "the slider shows how</h2>" in text
    assert len(text) - len(page_module._bundle()) < 2_500_000
