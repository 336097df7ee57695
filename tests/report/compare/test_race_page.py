"""The page of a race: its table against hand-made rows, its marks, and the names that it may meet."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from crosstail.algorithms import catalogue
from crosstail.report import page as page_module
from crosstail.report.compare.race_page import HEADER, MARKS, board_chart, board_table, cells, lead_chart, write_page

EVIL = "<script>alert(1)</script>"


def row(name: str, lead: tuple[float, float, float] | None, family: str = "vanilla", **others: Any) -> dict[str, Any]:
    figures = {"validation": 0.95, "test": 0.9, "low": 0.85, "high": 0.96, "deviation": None, "worst_domain": 0.7}
    difference = lead and dict(zip(("estimate", "low", "high"), lead, strict=True))
    level = lead is None or lead[1] <= 0
    words = {"algorithm": name, "family": family, "lead": difference, "level": level}
    return {**figures, **words, "seconds": 1.25, "runs": {"0": "abc"}, **others}


def record(*rows: dict[str, Any], **others: Any) -> dict[str, Any]:
    words = {"dataset": "my photos/", "backbone": "efficientnet_lite0", "freeze": True, "recommendation": "Use erm."}
    numbers = {"steps": 300, "batch_size": 24, "trials": 5, "seeds": 3, "samples": 240}
    return {**words, **numbers, "leaderboard": list(rows), "left_out": {}, "failed": [], **others}


TWO = record(row("boda", None, "ours", deviation=0.01), row("erm", (0.03, 0.01, 0.05)))


def page_of(folder: Path, of: dict[str, Any]) -> str:
    """The page without the script that draws it, which is the same for all."""
    (folder / "race.json").write_text(json.dumps(of), encoding="utf-8")
    return write_page(folder).read_text(encoding="utf-8").replace(page_module._bundle(), "")


def test_the_table_has_accuracies_in_percent_and_leads_in_points() -> None:
    first, second = board_table(TWO).to_dict("records")
    assert (first["place"], second["place"]) == (1, 2)
    assert [first[name] for name in ("validation", "test", "low", "high", "deviation", "worst_domain")] == (
        pytest.approx([95, 90, 85, 96, 1, 70])
    )
    assert [second[name] for name in ("lead", "lead_low", "lead_high")] == pytest.approx([3, 1, 5])
    assert math.isnan(second["deviation"]) and first["level"] and not second["level"]
    assert len(cells(first)) == len(HEADER)
    assert cells(first) == ["95.0", "90.0", "85.0 to 96.0", "1.0", "70.0", "", "", "1.2"]
    assert cells(second)[3:] == ["", "70.0", "+3.0", "+1.0 to +5.0", "1.2"]


def test_every_family_has_a_mark_of_its_own() -> None:
    assert {entry.family for entry in catalogue()} <= set(MARKS)
    assert len(set(MARKS.values())) == len(MARKS)


def test_an_unknown_family_is_drawn_as_ones_own() -> None:
    table = board_table(record(row("./mine.py", None, "mine")))
    assert table["family"].tolist() == ["own"]
    colours = board_chart(table).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert colours == {"domain": ["own"], "range": [MARKS["own"][0]]}


def test_charts_keep_the_order_and_the_first_has_no_lead_over_itself() -> None:
    table = board_table(TWO)
    for chart, names in ((board_chart(table), ["boda", "erm"]), (lead_chart(table), ["erm"])):
        spec = chart.to_dict()
        drawn = [r["algorithm"] for rows in spec["datasets"].values() for r in rows if "algorithm" in r]
        assert drawn == names
        marks = spec["layer"][-1]["encoding"]
        assert marks["y"]["sort"] is None and marks["shape"]["scale"]["domain"] == ["vanilla", "ours"]


def test_the_page_has_the_answer_first_and_every_figure(tmp_path: Path) -> None:
    failed = [{"algorithm": "irm", "run": "trial 2", "error": "became nan"}]
    text = page_of(tmp_path, TWO | {"left_out": {"coral": "coral needs two domains"}, "failed": failed})
    assert "<h1>Which algorithm for my photos?</h1>\n<p>Use erm.</p>" in text
    assert re.findall("<h2>(.*?)</h2>", text) == [
        "The leaderboard",
        "Which differences are more than noise",
        "All figures",
        "Left out",
        "Runs that failed",
        "How it was done",
        "How to go on",
    ]
    for of in board_table(TWO).to_dict("records"):
        assert "".join(f"<td>{cell}</td>" for cell in [of["algorithm"], *cells(of)]) in text
    assert "<td>irm</td><td>trial 2</td><td>became nan</td>" in text and "coral needs two domains" in text
    assert f"crosstail predict {tmp_path}/runs/abc FILES" in text and "fit &#x27;my photos/&#x27; --hparams" in text


def test_one_algorithm_alone_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    text = page_of(tmp_path, record(row("erm", None), seeds=1, freeze=False))
    assert text.count("data-chart=") == 1 and "embedded once" not in text and "every seed" not in text


def test_names_are_shown_as_text(tmp_path: Path) -> None:
    bad = record(row(f"./{EVIL}.py", None), row("<!--<script>", (0.0, -0.1, 0.1)), dataset=f"photos{EVIL}")
    bad |= {"left_out": {"a": EVIL}, "failed": [{"algorithm": EVIL, "run": "trial 0", "error": EVIL}]}
    text = page_of(tmp_path, bad | {"recommendation": f"Use {EVIL}."})
    assert EVIL not in text and "<!--" not in text
    charts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    drawn = {r["algorithm"] for rows in json.loads(charts[0])["datasets"].values() for r in rows}
    assert drawn == {f"./{EVIL}.py", "<!--<script>"}
