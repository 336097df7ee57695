"""Tables of a metric of probabilities: against `group_metrics`, with the right order, bold and sign."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from crosstail.metrics import FEW_TESTS, Answers, find, group_metrics
from crosstail.metrics._calibration import Calibration
from crosstail.reports.compare.gain_charts import gain_table
from crosstail.reports.compare.method_runs import MethodRun, method_runs
from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.significance import significance_table, verdict
from crosstail.reports.compare.tables import of_metric, overall_table, second_stage_table, summary_table
from crosstail.reports.compare.text_tables import overall, result_table
from crosstail.training.folder import RunFolder
from crosstail.training.held_out import HeldOut
from crosstail.training.run import Run

HITS, TOTALS, COUNTS = [[40, 20, 30], [35, 25, 0]], [[50, 50, 50], [50, 50, 0]], [[150, 40, 7], [7, 0, 30]]
NAMES = {"domains": ["d0", "d1"], "classes": ["c0", "c1", "c2"]}


def keep(folder, good, seed=0):
    """Give a run kept probabilities of 50 test samples of each pair, the better the larger `good`."""
    rng = np.random.default_rng(seed)
    domain, y = (np.repeat(index.ravel(), np.ravel(TOTALS)) for index in np.indices((2, 3)))
    scores = np.random.default_rng(7).normal(size=(len(y), 3)) + 0.3 * rng.normal(size=(len(y), 3))
    scores[np.arange(len(y)), y] += good
    log_p = (scores - np.log(np.exp(scores).sum(1, keepdims=True))).astype(np.float16)
    about = {"y": y, "domain": domain, "row": np.arange(len(y)), "true": log_p[np.arange(len(y)), y]}
    test = Answers(**NAMES, counts=np.array(COUNTS), **about, predicted=scores.argmax(1), log_p=log_p)
    HeldOut(test.keep(np.zeros(len(y), bool)), test).save(RunFolder(folder))
    RunFolder(folder).calibrate(Calibration.none(NAMES["domains"], 3))


@pytest.fixture(scope="module")
def place(make_run_in, tmp_path_factory):
    """ERM from two seeds, ERM with a second stage, and BoDA, which is best."""
    root = tmp_path_factory.mktemp("runs")
    about = {"totals": TOTALS, "counts": COUNTS}
    keep(make_run_in(root, "e0", HITS, **about), 0.5)
    keep(make_run_in(root, "e1", HITS, seed=1, **about), 0.6, seed=1)
    keep(make_run_in(root, "r0", HITS, second_stage="retrain", **about), 1.0, seed=2)
    keep(make_run_in(root, "b0", HITS, algorithm="boda", **about), 2.0, seed=3)
    return root


def cell(summary, method, metric, kind="metric"):
    (found,) = summary[
        (summary["method"] == method) & (summary["metric"] == metric) & (summary["kind"] == kind)
    ].to_dict("records")
    return found


@pytest.mark.parametrize("metric", ["macro_f1", "balanced_accuracy", "auroc", "log_loss", "brier", "calibration_error"])
def test_averages_and_extremes_are_those_of_the_tables_of_a_run(place, metric):
    summary = summary_table(method_runs(read_runs([place]).chosen, metric)[0])
    table = group_metrics(Run(place / "b0").held_out.test)
    pairs = table[table["domain"].notna() & table["class"].notna()][metric]
    domains = table[table["domain"].notna() & table["class"].isna()][metric]
    factor, lower = (1 if metric in ("log_loss", "brier") else 100), not find(metric).higher_is_better
    expected = {"pair average": pairs.mean(), "average": domains.mean()}
    expected |= {"worst pair": pairs.max() if lower else pairs.min()}
    expected |= {"worst domain": domains.max() if lower else domains.min()}
    for name, value in expected.items():
        assert cell(summary, "boda", name)["mean"] == pytest.approx(factor * value, rel=1e-4)
    assert cell(summary, "boda", "d1", "domain")["mean"] == pytest.approx(factor * domains.iloc[1], rel=1e-4)
    row = cell(summary, "boda", "pair average")
    assert 0 <= row["low"] < row["mean"] < row["high"]
    assert cell(summary, "erm", "pair average")["n"] == 2


@pytest.mark.parametrize("metric", ["macro_f1", "log_loss"])
def test_the_best_is_first_and_bold_whichever_way_is_better(place, metric):
    chosen = read_runs([place]).chosen
    summary = summary_table(method_runs(chosen, metric)[0])
    assert of_metric(summary, ["pair average"], "photos")["method"].tolist() == ["boda", "erm:retrain", "erm"]
    table = result_table(summary, "photos", "photos")
    assert [row[0] for row in table.rows] == ["• boda", "erm:retrain", "erm"]
    assert (0, 2) in table.emphasised and (2, 2) not in table.emphasised and "boda" in table.title
    assert overall_table(summary).loc["boda", "mean"] == pytest.approx(cell(summary, "boda", "average")["mean"])
    side_by_side = overall(summary)
    place_of_boda = [row[0] for row in side_by_side.rows].index("• boda")
    assert {i for i, _ in side_by_side.emphasised} == {place_of_boda}
    (gain,) = second_stage_table(summary)["gain"]
    assert gain > 0  # better, also where that is lower
    found, _ = method_runs(chosen, metric)
    gains = gain_table(found, "erm")
    assert gains[gains["method"] == "boda"]["gain"].mean() > 0
    tested = gains["low"].notna()
    assert tested.any() and ((gains["low"] < gains["gain"]) & (gains["gain"] < gains["high"]))[tested].all()


@pytest.mark.parametrize("metric", ["macro_f1", "log_loss"])
def test_differences_are_tested_on_the_same_samples(place, metric):
    tests = significance_table(method_runs(read_runs([place]).chosen, metric)[0], "boda")
    assert set(tests["against"]) == {"boda"} and (tests["adjusted"] < 0.01).all()
    assert ((tests["difference"] > 0) == (metric == "log_loss")).all()
    assert ((tests["low"] < tests["difference"]) & (tests["difference"] < tests["high"])).all()
    assert "2 significantly worse" in verdict(tests, find(metric))


def test_equal_models_do_not_differ(make_run, tmp_path):
    about = {"totals": TOTALS, "counts": COUNTS}
    keep(make_run("a", HITS, **about), 1.0, seed=1)
    keep(make_run("b", HITS, algorithm="boda", **about), 1.0, seed=1)
    keep(make_run("c", HITS, algorithm="coral", **about), 1.0, seed=2)
    tests = significance_table(method_runs(read_runs([tmp_path]).chosen, "auroc")[0], "erm").set_index("method")
    assert tests.loc["boda", "p"] == 1 and tests.loc["coral", "p"] > 0.01


def test_a_run_without_kept_probabilities_is_left_out_and_named(place, tmp_path):
    shutil.copytree(place, tmp_path / "runs")
    (tmp_path / "runs/b0/probabilities.npz").unlink()
    runs = read_runs([tmp_path / "runs"])
    found, missing = method_runs(runs.chosen, "auroc")
    assert {run.method for run in found} == {"erm", "erm:retrain"} and len(missing) == 1
    assert str(tmp_path / "runs/b0") in missing[0] and "auroc" in missing[0]
    page = write_report(tmp_path / "report", Results(runs, "auroc"), files=False).read_text(encoding="utf-8")
    assert "runs/b0" in page
    assert not method_runs(runs.chosen)[1]  # accuracy needs none


def test_without_any_the_error_names_one(make_run, tmp_path):
    folder = make_run("a", HITS, totals=TOTALS, counts=COUNTS)
    with pytest.raises(ValueError, match=f"{folder}.*log_loss"):
        write_report(tmp_path / "report", Results(read_runs([tmp_path]), "log_loss"))


def test_all_renderers_have_the_metric(place, tmp_path):
    page = write_report(tmp_path, Results(read_runs([place]), "log_loss"), files=False).read_text(encoding="utf-8")
    summary = summary_table(method_runs(read_runs([place]).chosen, "log_loss")[0])
    value = f"{cell(summary, 'boda', 'pair average')['mean']:.3f}"
    texts = [(tmp_path / "tables" / f"results-photos.{suffix}").read_text() for suffix in ("md", "tex")]
    assert all(value in text for text in (page, *texts)) and "has the best pair average of the log loss" in page
    paper = (tmp_path / "tables/paper-photos.tex").read_text()
    assert value in paper and "log loss" in paper and "in \\%" not in paper


def test_a_pair_with_few_test_samples_has_no_colour(place, monkeypatch):
    found, _ = method_runs(read_runs([place]).chosen, "brier")
    assert gain_table(found, "erm")["sure"].notna().any()
    whole = MethodRun.pairs.fget
    short = property(lambda run: replace(whole(run), totals=np.minimum(whole(run).totals, FEW_TESTS - 1)))
    monkeypatch.setattr(MethodRun, "pairs", short)
    assert gain_table(found, "erm")["sure"].isna().all()


def test_a_report_reads_the_probabilities_of_a_run_once(place, monkeypatch, tmp_path):
    loaded = []
    monkeypatch.setattr(
        HeldOut, "load", lambda folder, result, load=HeldOut.load: loaded.append(folder) or load(folder, result)
    )
    write_report(tmp_path, Results(read_runs([place]), "brier"), files=False)
    assert len(loaded) == 4
