"""The demo from start to page, with one seed and few steps."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosstail.cli import app, demo


@pytest.mark.slow
def test_demo_trains_every_method_and_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "STEPS", 20)
    monkeypatch.setenv("COLUMNS", "80")
    outcome = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--seeds", "1"], catch_exceptions=False)
    assert outcome.exit_code == 0
    assert all(method in outcome.output for method in demo.METHODS)
    assert max(map(len, outcome.output.splitlines())) <= 80
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    assert len(results) == len(demo.METHODS)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    # The figures on the page are those of the runs.
    for result in results:
        assert f"{100 * result['test']['pair_average']:.1f}" in page
    assert len(re.findall("data-chart=", page)) == 4


def test_every_method_of_the_demo_has_searched_hyperparameters() -> None:
    for method in demo.METHODS:
        spec = demo.spec(method, seed=0)
        assert spec.steps == demo.STEPS
        assert spec.freeze
