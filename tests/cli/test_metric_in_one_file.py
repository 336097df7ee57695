"""A metric is one file: geometric means of recalls, in the package or named by path, in every command and page."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from crosstail import metrics
from crosstail.testing import save_separable
from crosstail.testing.parts import METRIC_CHECKS

SOURCE = '''
"""Geometric mean of the recalls of the classes of a domain; one that is never recognised makes it 0."""

import numpy as np

from crosstail.metrics import Answers, Computed, Metric, by_group, means, root_sum


def recalls(answers: Answers, group, groups):
    classes = len(answers.classes)
    cell = group * classes + answers.y
    recall = means(answers.correct.astype(float), cell, groups * classes)
    table = recall.values.reshape(groups, classes)
    present = ~np.isnan(table)
    number = present.sum(1)
    product = np.where(present, table, 1).prod(1)
    found = np.where(number > 0, product ** (1 / number.clip(1)), np.nan)
    own = recall.values[cell]
    slope = np.divide(found[group] / number[group], own, where=own > 0, out=np.zeros(len(own)))
    influence = slope * recall.influence
    return Computed(found, root_sum(influence, group, groups), influence)


METRIC = Metric(label="geometric mean", of=by_group(recalls), needs="predicted")
'''
FIT = "fit v.npz --algorithm erm --width 8 --steps 8 --batch-size 8 --evaluations 2"


@pytest.fixture
def gmean(tmp_path, monkeypatch):
    """A folder with the file; tests add it to the package or name the file."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gmean.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    save_separable(tmp_path / "v.npz", [[60, 40, 9], [50, 20, 30]])
    return tmp_path / "own"


@pytest.fixture
def in_package(gmean, monkeypatch):
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(gmean)])
    yield
    sys.modules.pop("crosstail.metrics.gmean", None)


@pytest.mark.usefixtures("in_package")
@pytest.mark.parametrize("check", METRIC_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ["gmean", "own/gmean.py"])
def test_it_keeps_the_promises_of_the_others(name, check):
    check(name)


def test_the_help_names_it(gmean):
    code = f"import crosstail.metrics as m; m.__path__.append({str(gmean)!r})\n"
    for verb, option in (("fit", "--select-on"), ("race", "--select-on"), ("report", "--metric")):
        run = f"{code}from crosstail import cli; cli.main(['{verb}', '--help'])"
        wide = {**os.environ, "COLUMNS": "1000"}
        shown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, env=wide).stdout
        (line,) = (line for line in shown.splitlines() if option in line)
        assert "gmean" in line and "macro_f1" in line


@pytest.mark.usefixtures("in_package", "full_page")
def test_in_the_package_it_is_listed_selected_on_and_reported(crosstail, tmp_path):
    listed = {row["name"]: row["what"] for row in json.loads(crosstail("list metrics --json").out)}
    assert listed["gmean"].startswith("Geometric mean of the recalls")
    crosstail(f"{FIT} --select-on gmean --out runs/one").ok()
    result = json.loads((tmp_path / "runs/one/result.json").read_text())
    assert result["spec"]["select_on"] == "gmean"
    for page in ("model_card.md", "report.html"):
        assert "geometric mean" in (tmp_path / "runs/one" / page).read_text()
    table = pd.read_csv(tmp_path / "runs/one/metrics.csv")
    pairs = table[table["domain"].notna() & table["class"].notna()]
    of_domains = table[table["domain"].notna() & table["class"].isna()].set_index("domain")["gmean"]
    by_hand = pairs.groupby("domain")["balanced_accuracy"].agg(lambda recall: recall.prod() ** (1 / len(recall)))
    assert of_domains.to_dict() == pytest.approx(by_hand.to_dict(), abs=1e-6)

    for metric, out in (("gmean", "a"), ("own/gmean.py", "b")):
        crosstail(f"report runs --metric {metric} --out {out}").ok()
        assert "geometric mean" in (tmp_path / out / "index.html").read_text()
    for file in (tmp_path / "a/tables").glob("*.csv"):
        told = file.read_text().replace(",gmean", ",own/gmean.py")
        assert told == (tmp_path / "b/tables" / file.name).read_text(), file.name


@pytest.mark.usefixtures("gmean")
def test_a_file_without_a_metric_is_named(crosstail, refused, tmp_path):
    crosstail(f"{FIT} --out runs/one").ok()
    (tmp_path / "bad.py").write_text("METRIC = 3")
    assert "bad.py, line 1: expected one METRIC, made by Metric(...)" in refused("report runs --metric bad.py")
    assert "none.py: cannot be read" in refused("report runs --metric none.py")
    assert "did you mean './bad.py', the file?" in refused("report runs --metric bad")
