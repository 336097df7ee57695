"""The page of a race: its table against hand-made rows, its marks, and names that need escaping."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosstail.metrics import Difference
from crosstail.reports.compare.race_page import (
    behind_table,
    board_table,
    group_items,
    leaderboard,
    write_page,
)
from crosstail.reports.document import html
from crosstail.sweeps.cost import MethodCost
from crosstail.sweeps.race_result import FailedRun, RaceResult, Standing, StoppedMethod
from crosstail.sweeps.recommendation import recommendation, winner

EVIL = "<script>alert(1)</script>"


def standing(name: str, lead: tuple[float, float, float] | None, family: str = "vanilla", **others: Any) -> Standing:
    accuracies = {"validation": 0.95, "test": 0.9, "low": 0.85, "high": 0.96, "deviation": None, "worst_domain": 0.7}
    facts = {"cost": MethodCost(1.0, 1, False, 0), "seconds": 1.25, "trial": 0, "hparams": {}, "runs": {0: ["abc"]}}
    difference = lead and Difference(*lead, p_value=0.1, adjusted=0.01 if lead[1] > 0 else 0.5)
    return Standing(method=name, family=family, lead=difference, **{**accuracies, **facts, **others})


def race(*board: Standing, dataset: str = "my photos/", seeds: int = 3, **others: Any) -> RaceResult:
    settings = {"dataset": dataset, "backbone": "efficientnet_lite0", "tune": "none", "steps": 300, "batch_size": 24}
    settings |= {"validation_samples": 120, "pairs": (9, 12), "use": winner(board).method}
    settings |= {"trials": 5, "seeds": seeds, "samples": 240, "complete": True, "left_out": {}, "failed": []}
    text = recommendation(board, 120)
    settings |= {"next": "crosstail fit 'my photos/'", "next_text": "Train it for longer."}
    return RaceResult(**{"recommendation": text, "leaderboard": list(board), **settings, **others})


TWO = standing("boda", None, "ours", deviation=0.01), standing("erm", (0.03, 0.01, 0.05))


def page_of(folder: Path, of: RaceResult) -> str:
    """The page without the drawing library, which is the same for all."""
    write_page(of, folder)
    return (folder / "report.html").read_text(encoding="utf-8").replace(html._vega(), "")


def test_the_table_has_accuracies_in_percent_and_leads_in_points() -> None:
    first, second = board_table(TWO).to_dict("records")
    assert (first["place"], second["place"]) == (1, 2)
    assert [first[name] for name in ("validation", "test", "low", "high", "deviation", "worst_domain")] == (
        pytest.approx([95, 90, 85, 96, 1, 70])
    )
    assert [second[name] for name in ("lead", "lead_low", "lead_high")] == pytest.approx([3, 1, 5])
    assert math.isnan(second["deviation"]) and first["level"] and not second["level"]
    table = leaderboard(TWO)
    assert table.rows[0] == ["boda", "95.0", "90.0", "85.0 to 96.0", "1.0", "", "1.2", "70.0"]
    assert table.rows[1][4:] == ["", "+3.0 (+1.0 to +5.0)", "1.2", "70.0"]
    assert table.faint == {1} and len(table.header) == 8
    narrow = leaderboard(TWO, narrow=True)
    assert [len(row) for row in narrow.rows] == [len(narrow.header)] * 2 and narrow.header[-1] == "lead of the first"


@pytest.mark.parametrize("narrow", [False, True])
def test_the_leaderboard_has_the_accuracy_with_the_domain_known_if_a_method_uses_it(narrow: bool) -> None:
    board = standing("mtl", None, "transfer", known=0.93), standing("erm", (0.03, 0.01, 0.05))
    table = leaderboard(board, narrow=narrow)
    assert "known" in table.header[5] and [row[5] for row in table.rows] == ["93.0", "90.0"]  # erm ignores it
    assert [len(row) for row in table.rows] == [len(table.header)] * 2 and "domain" in table.note
    assert not any("known" in name for name in leaderboard(TWO, narrow=narrow).header)


def test_a_method_with_the_same_answers_has_no_interval() -> None:
    assert leaderboard((TWO[0], standing("ncm", (0.0, 0.0, 0.0)))).rows[1][5] == "the same"


def test_one_trial_is_one_with_the_defaults(tmp_path: Path) -> None:
    text = page_of(tmp_path, race(*TWO, trials=1))
    assert "300 steps with 24 samples per domain, default hyperparameters and run with 3 seeds" in text
    assert "others random" not in text and "5 trials of 300 steps" in page_of(tmp_path, race(*TWO))


THREE = TWO[0], standing("coral", (0.01, -0.02, 0.04), "invariance", test=0.89), TWO[1]


def test_tied_methods_are_one_row_and_worse_ones_a_row_each() -> None:
    first, tied, worse = group_items(THREE).items
    assert first.text == "First: boda" and "test 90.0 %" in first.detail
    assert tied.text == "1 tied: coral" and "test 89.0 %" in tied.detail and "+1.0 points" in tied.detail
    assert worse.text == "1 worse: erm" and "+3.0 points" in worse.detail
    rows = behind_table(board_table(THREE)).to_dict("records")
    assert [row["method"] for row in rows] == ["first and 1 tied", "erm"]
    assert [rows[0][name] for name in ("first", "last", "lead_low", "lead_high")] == pytest.approx([0, 1, -2, 4])
    assert [rows[1][name] for name in ("lead", "lead_low", "lead_high")] == pytest.approx([3, 1, 5])


def test_without_a_worse_method_there_is_no_chart(tmp_path: Path) -> None:
    text = page_of(tmp_path, race(*THREE[:2]))
    assert "data-chart=" not in text and "1 tied with boda, 0 worse</h2>" in text
    assert page_of(tmp_path, race(*THREE)).count("data-chart=") == 1


def test_the_page_has_the_answer_first_and_every_metric(tmp_path: Path) -> None:
    failed = [FailedRun("irm", "trial 2", "became nan")]
    text = page_of(tmp_path, race(*TWO, left_out={"coral": "coral needs two domains"}, failed=failed))
    assert "<h1>Which method for my photos?</h1>" in text
    assert text.index("Use boda: it is best on validation") < text.index("<h2")
    headings = re.findall("<h2[^>]*>(.*?)</h2>", text)
    assert headings[0] == "0 tied with boda, 1 worse" and headings[1:] == ["Left out", "Method", "Next steps"]
    for row in leaderboard(TWO).rows:
        assert "".join(f"<td>{cell}</td>" for cell in row) in text
    assert all(f">{cell}</td>" in text for cell in ("irm", "trial 2", "became nan")) and "coral needs two" in text
    assert "crosstail fit &#39;my photos/&#39;" in text and f"{tmp_path}/best" in text


def test_a_single_method_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    text = page_of(tmp_path, race(standing("erm", None), seeds=1))
    assert "data-chart=" not in text and "tied," not in text and "all seeds" not in text


def test_names_are_shown_as_text(tmp_path: Path) -> None:
    rows = standing(f"./{EVIL}.py", None), standing("<!--<script>", (0.3, 0.1, 0.5))
    bad = race(*rows, dataset=f"photos{EVIL}", left_out={"a": EVIL}, failed=[FailedRun(EVIL, "trial 0", EVIL)])
    text = page_of(tmp_path, bad)
    assert EVIL not in text and "<!--" not in text
    charts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    drawn = {r["method"] for rows in json.loads(charts[0])["datasets"].values() for r in rows if "method" in r}
    assert drawn == {"<!--<script>"}


def test_the_heading_counts_what_is_the_same_and_the_list_names_it(tmp_path: Path) -> None:
    twin = standing("focal", (0.0, -0.01, 0.01))
    twin = replace(twin, lead=replace(twin.lead, same=True))
    text = page_of(tmp_path, race(*THREE, twin))
    assert "1 tied with boda, 1 the same, 1 worse</h2>" in text
    assert "1 the same: focal" in text and "1 tied: coral" in text


def test_text_next_steps_and_the_link_name_one_winner(tmp_path: Path) -> None:
    cheap = standing("frozen:blend", (0.001, -0.01, 0.02), "ours", cost=MethodCost(0.0, 1, True, 0))
    text = page_of(tmp_path, race(standing("resample", None), cheap))
    assert text.index("Use frozen:blend: it is the cheapest") < text.index("<h2")
    assert f"{tmp_path}/best is the run of frozen:blend in this race" in text


def test_why_validation_and_test_differ_is_said(tmp_path: Path) -> None:
    said = "they are from 120 samples of 9 pairs, the test figures from 240 samples of 12 pairs"
    assert said in page_of(tmp_path, race(*TWO))


def test_many_stopped_methods_are_one_line_until_it_is_opened(tmp_path: Path) -> None:
    stopped = [StoppedMethod(f"m{i}", 1, 0.5) for i in range(51)]
    text = page_of(tmp_path, race(*TWO, stopped=stopped))
    details = re.search('<details class="more"><summary>(.*?)</summary>(.*?)</details>', text, re.DOTALL)
    assert "51 methods stopped early, on validation<" in details[1]
    assert all(f">m{i}</td>" in details[2] for i in range(51)) and text.count(">m7</td>") == 1


def test_the_longest_row_fits_the_terminal() -> None:
    lead = (0.319, 0.199, 0.44)
    board = TWO[0], standing("frozen:posthoc_prior", lead, deviation=0.106, known=0.5)
    table = leaderboard(board, narrow=True)
    widths = [max(map(len, column)) for column in zip(*table.rows, strict=True)]
    assert sum(widths) + len(widths) - 1 <= 80
