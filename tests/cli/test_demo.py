"""The demo from start to page, with one seed and few steps."""

import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from crosstail.data.benchmarks import digits
from crosstail.reports.compare.demo_page import verdict
from crosstail.workflows import demo


@pytest.mark.slow
def test_demo_trains_every_method_and_writes_its_page(crosstail, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(demo, "STEPS", 20)
    monkeypatch.setattr(digits, "POOL", {"train": 9, "val": 3, "test": 4})  # too few for an export to ONNX
    done = crosstail("demo --out . --seeds 1")
    assert done.code == 0
    assert all(method in done.out for method in demo.METHODS)
    assert max(map(len, done.out.splitlines())) <= 80
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    assert len(results) == len(demo.METHODS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    # The page shows the accuracies of the runs.
    for result in results:
        assert f"<td>{100 * result['test']['worst_domain']:.1f}</td>" in re.sub(' class="best"', "", page)
    assert "uses frozen:blend" in page
    report = crosstail("report . --out out --page-only")
    assert report.code == 0 and "5 finished runs, 0 folders skipped" in report.out
    # The same charts, and charts of the features of two runs.
    own = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert [len(re.findall("data-chart=", text)) for text in (own, page)] == [4, 4 + 1 + 2 * 2]


def test_the_demo_replaces_no_page_of_another_command(crosstail, tmp_path: Path) -> None:
    (tmp_path / "race").mkdir()
    (tmp_path / "race" / "report.html").write_text("a race", encoding="utf-8")
    done = crosstail("demo --out race")
    assert done.code == 2 and "report.html" in done.err
    assert [file.name for file in (tmp_path / "race").iterdir()] == ["report.html"]


def test_the_methods_of_the_demo_share_data_backbone_and_steps() -> None:
    for method in demo.METHODS:
        spec = demo.spec(method, seed=0)
        assert (spec.method, spec.steps, spec.tune) == (method, demo.STEPS, "none")


@pytest.mark.parametrize(("std", "words"), [(0.6, "over the seeds 0.6"), (math.nan, "one seed each")])
def test_the_verdict_is_that_of_the_table(std: float, words: str) -> None:
    means = {"erm": 55.5, "erm:retrain": 59.0, "boda:retrain": 60.0, "frozen:blend": 72.0}
    shifts = {"pair average": 0.0, "few": -10.0, "zero": -50.0}
    rows = [("metric", m, method, mean + shift, std) for m, shift in shifts.items() for method, mean in means.items()]
    sentence = verdict(pd.DataFrame(rows, columns=["kind", "metric", "method", "mean", "std"]))
    assert "frozen:blend: 72.0 %" in sentence and words in sentence
    assert "+16.5 points against erm" in sentence and "+12.0 against boda:retrain" in sentence
    assert "62.0 % (erm: 45.5 %)" in sentence and "22.0 % (erm: 5.5 %)" in sentence
