import math

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from crosstail.metrics import PairAccuracy, average_interval, find, mean_interval
from crosstail.metrics._methods import holm
from crosstail.reports.compare.method_runs import method_runs
from crosstail.reports.compare.page import write_report
from crosstail.reports.compare.paper_table import paper_table
from crosstail.reports.compare.ranks import ranks
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.significance import AGAIN, THESE, significance_table, verdict
from crosstail.reports.compare.tables import (
    alignment_table,
    hparams_table,
    nu_table,
    overall_table,
    second_stage_table,
    summary_table,
    transfer_table,
)
from crosstail.reports.compare.text_tables import domain_table, effects, known_table, result_table
from crosstail.reports.document import latex, markdown
from crosstail.reports.document.files import save_floating, save_table
from crosstail.storage import write_json
from crosstail.training.folder import RunFolder


@pytest.fixture
def chosen(make_run, tmp_path):
    """ERM from two seeds and BoDA from one."""
    make_run("e0", [[10, 6], [4, 0]])
    make_run("e1", [[8, 6], [2, 0]], seed=1)
    make_run("b0", [[10, 8], [6, 4]], algorithm="boda")
    return read_runs([tmp_path]).chosen


def cell(summary, method, metric, kind="metric"):
    found = summary[(summary["method"] == method) & (summary["metric"] == metric) & (summary["kind"] == kind)]
    assert len(found) == 1
    return found.iloc[0]


def test_summary_has_mean_spread_and_number_of_seeds(chosen):
    summary = summary_table(method_runs(chosen)[0])
    average = cell(summary, "erm", "average")
    assert average["mean"] == pytest.approx((50 + 40) / 2) and average["n"] == 2
    assert average["std"] == pytest.approx(math.sqrt(50))  # of 50 and 40
    assert cell(summary, "erm", "worst domain")["mean"] == pytest.approx((20 + 10) / 2)
    assert cell(summary, "erm", "many")["mean"] == pytest.approx(90)
    assert cell(summary, "erm", "zero")["mean"] == 0
    assert cell(summary, "erm", "worst pair")["mean"] == 0
    assert cell(summary, "erm", "d1", "domain")["mean"] == pytest.approx(15)
    assert math.isnan(cell(summary, "boda", "average")["std"])


def test_methods_are_compared_with_the_domain_known_where_one_of_them_uses_it(make_run, tmp_path):
    make_run("e", [[10, 6], [4, 1]])
    known = [[[10, 8], [6, 4]], [[10, 10], [8, 4]]]
    for seed, hits in enumerate(known):
        make_run(f"m{seed}", [[9, 8], [5, 2]], algorithm="mtl", seed=seed, known=hits)
    chosen = read_runs([tmp_path]).chosen
    summary = summary_table(method_runs(chosen)[0])
    assert cell(summary, "mtl", "pair average")["mean"] == pytest.approx(60)
    averages = [100 * np.mean(hits) / 10 for hits in known]
    for kind, metric in (("metric", "pair average, domain known"), ("known", "pair average")):
        row = cell(summary, "mtl", metric, kind)
        assert row["mean"] == pytest.approx(np.mean(averages)) and row["std"] == pytest.approx(np.std(averages, ddof=1))
        hits = np.mean(known, axis=0).ravel()
        ends = average_interval(hits, np.full(4, 10.0), np.full(4, 0.25))
        assert row[["low", "high"]].tolist() == pytest.approx([100 * end for end in ends])
        assert cell(summary, "erm", metric, kind)["mean"] == pytest.approx(52.5)  # it ignores the domain
    assert cell(summary, "mtl", "worst pair", "known")["mean"] == pytest.approx(40)
    table, other = result_table(summary, "photos", "r"), known_table(summary, "photos", "k")
    assert "pair average, domain known" in table.header and [row[0] for row in other.rows] == ["mtl", "erm"]
    assert "domain known" in other.title and "mtl" in other.title and f"{np.mean(averages):.1f}" in other.title
    save_table(other, tmp_path / "tables")
    assert "known" in (tmp_path / "tables" / "k.csv").read_text()


def test_without_a_method_that_uses_the_domain_there_is_one_track(chosen):
    summary = summary_table(method_runs(chosen)[0])
    assert known_table(summary, "photos", "k") is None and set(summary["kind"]) == {"metric", "domain"}
    assert not any("known" in name for name in result_table(summary, "photos", "r").header)


def test_the_known_track_of_folds_is_pooled(make_run, tmp_path):
    for k, hits in enumerate(([[10, 8], [6, 4]], [[10, 10], [8, 4]]), 1):
        make_run(f"f{k}", [[9, 8], [5, 2]], algorithm="mtl", folds=2, fold=k, known=hits)
    summary = summary_table(method_runs(read_runs([tmp_path]).chosen)[0])
    assert cell(summary, "mtl", "worst pair", "known")["mean"] == pytest.approx(100 * (4 + 4) / 20)
    assert cell(summary, "mtl", "pair average", "known")["mean"] == pytest.approx(100 * (20 + 18 + 14 + 8) / 80)


def test_best_and_boda_are_marked(chosen):
    summary = summary_table(method_runs(chosen)[0])
    assert cell(summary, "boda", "average")["best"] and not cell(summary, "erm", "average")["best"]
    assert set(summary[summary["boda"]]["method"]) == {"boda"}


def test_a_metric_on_which_all_agree_has_no_best(make_run, tmp_path):
    make_run("a", [[9, 9], [9, 9]])
    make_run("b", [[9, 9], [9, 9]], algorithm="boda")
    assert not summary_table(method_runs(read_runs([tmp_path]).chosen)[0])["best"].any()


def test_interval_of_an_average_is_that_of_the_metric(chosen):
    accuracy = PairAccuracy(np.array([[10, 8], [6, 4]]), np.full((2, 2), 10))
    for name, view in (("pair average", "pair_average"), ("average", "average")):
        row = cell(summary_table(method_runs(chosen)[0]), "boda", name)
        assert row[["low", "high"]].tolist() == pytest.approx([100 * end for end in accuracy.interval(view)])
    assert math.isnan(cell(summary_table(method_runs(chosen)[0]), "boda", "worst pair")["low"])


def test_interval_of_a_perfect_method_has_a_width(make_run, tmp_path):
    make_run("a", [[3, 3], [3, 3]], totals=[[3, 3], [3, 3]])
    row = cell(summary_table(method_runs(read_runs([tmp_path]).chosen)[0]), "erm", "pair average")
    assert row["low"] < 80 and row["high"] == 100


def test_a_worst_pair_with_few_test_samples_says_so(make_run, tmp_path):
    make_run("a", [[10, 0], [15, 8]], totals=[[20, 2], [20, 9]])
    make_run("b", [[1, 2], [15, 8]], totals=[[20, 2], [20, 9]], algorithm="boda")
    summary = summary_table(method_runs(read_runs([tmp_path]).chosen)[0])
    worst = {method: cell(summary, method, "worst pair") for method in ("erm", "boda")}
    assert (worst["erm"]["tests"], worst["boda"]["tests"]) == (2, 20)
    assert cell(summary, "erm", "10th percentile")["mean"] == pytest.approx(0.3 * 50)
    table = result_table(summary, "photos", "results")
    column = table.header.index("worst pair")
    assert {row[0].strip("• "): row[column] for row in table.rows} == {"erm": "0.0 (n = 2)", "boda": "5.0"}
    assert "2 pairs" in table.note and "chance" in table.note


def test_folds_of_a_seed_belong_together_and_an_incomplete_seed_is_named(make_run, tmp_path):
    for seed, unseen in ((0, (0, 1)), (1, (0,))):
        for d in unseen:
            hits, totals = [[0, 0], [0, 0]], [[0, 0], [0, 0]]
            hits[d], totals[d] = [[6, 2], [10, 4]][d], [10, 10]
            make_run(f"{seed}{d}", hits, totals=totals, protocol="dg", unseen=f"d{d}", seed=seed)
    chosen = read_runs([tmp_path]).chosen
    found, missing = method_runs(chosen)
    assert len(found) == 1 and missing == ["erm on photos, dg, seed 1: no run for unseen d1"]
    summary = summary_table(method_runs(chosen)[0])
    assert cell(summary, "erm", "accuracy")["mean"] == pytest.approx((40 + 70) / 2)
    assert cell(summary, "erm", "d1", "domain")["mean"] == pytest.approx(70)
    assert not {"many", "average", "pair average"} & set(summary["metric"])


def test_overall_mean_needs_every_data_set(make_run, tmp_path):
    make_run("a", [[10, 10], [10, 10]])
    make_run("b", [[5, 5], [5, 5]], dataset="other")
    make_run("c", [[5, 5], [5, 5]], algorithm="boda")
    table = overall_table(summary_table(method_runs(read_runs([tmp_path]).chosen)[0]))
    assert table.loc["erm"].tolist() == [100, 50, 75]
    assert math.isnan(table.loc["boda", "mean"])


def test_gains_and_ranks_over_data_sets_are_of_the_methods_that_were_run_everywhere(make_run, tmp_path, monkeypatch):
    for data, hits in {"photos": (2, 6, 9), "maps": (3, 5, 9), "texts": (4, 7, 4)}.items():
        for method, hit in zip(("erm", "boda", "coral"), hits, strict=True):
            make_run(f"{data}-{method}", [[hit, hit], [hit, hit]], dataset=data, algorithm=method)
    make_run("more", [[9, 9], [9, 9]], algorithm="dann")
    summary = summary_table(method_runs(read_runs([tmp_path]).chosen)[0])
    assert list(ranks(summary)) == []  # there are too few data sets
    monkeypatch.setattr("crosstail.reports.compare.ranks.FEWEST", 3)
    text, ranked = ranks(summary)
    order = list(ranked.numbers.columns[1:4])
    found = {row[0]: (row[1], dict(zip(order, row[2:], strict=True))) for row in ranked.rows}
    assert found == {
        "coral": ("1.5", {"photos": "1", "maps": "1", "texts": "2.5"}),
        "boda": ("1.7", {"photos": "2", "maps": "2", "texts": "1"}),
        "erm": ("2.8", {"photos": "3", "maps": "3", "texts": "2.5"}),
    }
    assert "so are 0 methods from the first, coral" in text.text
    table = effects(summary)
    gains = {"boda": [40, 20, 30], "coral": [70, 60, 0]}
    assert [row[0] for row in table.rows] == ["coral", "boda", "erm"]
    for row in table.rows[:2]:
        low, high = mean_interval(sorted(gains[row[0]]))
        assert row[1:3] == [f"{np.mean(gains[row[0]]):+.1f}", f"{low:+.1f} to {high:+.1f}"]


def test_variants_stand_beside_each_other(make_run, tmp_path):
    make_run("a", [[4, 4], [4, 4]], algorithm="da+coral")
    make_run("b", [[5, 5], [5, 5]], algorithm="boda+coral")
    make_run("c", [[8, 8], [8, 8]], algorithm="boda+coral", second_stage="retrain")
    summary = summary_table(method_runs(read_runs([tmp_path]).chosen)[0])
    assert second_stage_table(summary).to_numpy().tolist() == [["photos", "boda+coral:retrain", 50, 80, 30]]
    assert alignment_table(summary)[["DA", "BoDA", "gain"]].to_numpy().tolist() == [[40, 50, 10]]


def test_nu_is_a_row_each_where_there_are_two(make_run, tmp_path):
    for i, (nu, seed, hits) in enumerate(((0.5, 0, 4), (0.5, 1, 6), (1.0, 0, 9))):
        make_run(f"{i}", [[hits, hits]] * 2, algorithm="boda", hparams={"nu": nu}, seed=seed)
    make_run("erm", [[1, 1]] * 2)
    table = nu_table(method_runs(read_runs([tmp_path]).chosen)[0])
    assert table[["nu", "mean", "n"]].to_numpy().tolist() == [[0.5, 50, 2], [1.0, 90, 1]]


def test_hyperparameters_and_transferability(chosen):
    table = hparams_table(chosen)
    assert table["hparams"].tolist() == ["{}", "{}"]
    assert sorted(table["validation"]) == pytest.approx([45, 70])
    assert transfer_table(chosen)["separation"].tolist() == [5.0] * 3


def test_the_best_and_the_others_are_compared_by_a_paired_bootstrap(chosen):
    row = significance_table(method_runs(chosen)[0]).iloc[0]
    assert (row["method"], row["against"]) == ("erm", "boda")
    assert row["difference"] == pytest.approx(45 - 70)
    assert row["low"] < -25 < row["high"] and row["p"] < 0.01


def test_groups_widen_the_intervals_of_means_and_differences(make_run, tmp_path):
    hits = {"erm": [[8, 6], [4, 2]], "boda": [[10, 8], [6, 4]]}
    for place in ("plain", "grouped"):
        for algorithm, own in hits.items():
            squares = [[20, 20], [20, 20]] if place == "grouped" else None
            make_run(f"{place}/{algorithm}", own, algorithm=algorithm, squares=squares)
    for algorithm in hits:
        file = tmp_path / "grouped" / algorithm / "predictions.pt"
        torch.save({**torch.load(file), "group": torch.arange(40) // 2}, file)
    plain, grouped = (read_runs([tmp_path / place]).chosen for place in ("plain", "grouped"))
    of_pairs = PairAccuracy(*map(np.array, ([[8, 6], [4, 2]], np.full((2, 2), 10), np.full((2, 2), 20))))
    for metric, view in (("pair average", "pair_average"), ("average", "average")):
        row = cell(summary_table(method_runs(grouped)[0]), "erm", metric)
        assert (row["low"], row["high"]) == pytest.approx([100 * end for end in of_pairs.interval(view)])
        assert row["low"] < cell(summary_table(method_runs(plain)[0]), "erm", metric)["low"] - 1
    narrow, wide = (significance_table(method_runs(runs)[0]).iloc[0] for runs in (plain, grouped))
    assert narrow["difference"] == wide["difference"] and wide["low"] < narrow["low"] and wide["high"] > narrow["high"]


def test_without_predictions_there_is_no_test(chosen):
    (chosen["run"].iloc[0].folder / "predictions.pt").unlink()
    row = significance_table(method_runs(chosen)[0]).iloc[0]
    assert row["difference"] == pytest.approx(-25) and math.isnan(row["p"]) and math.isnan(row["adjusted"])
    assert "predictions" in verdict(significance_table(method_runs(chosen)[0]), find("accuracy"))


def test_text_marks_the_best_and_boda_and_is_escaped(make_run, tmp_path):
    make_run("a", [[10, 6], [4, 0]], dataset="a_b")
    make_run("b", [[10, 8], [6, 4]], dataset="a_b", algorithm="boda")
    table = result_table(summary_table(method_runs(read_runs([tmp_path]).chosen)[0]), "a_b", "a_b")
    rows = {row[0]: row for row in table.rows}
    assert list(rows) == ["• boda", "erm"]  # the best first
    assert table.header[2] == "pair average"  # what they are ranked by
    assert rows["• boda"][:5] == ["• boda", "1", "70.0", "70.0", "50.0"] and rows["erm"][2] == "50.0"
    assert "**70.0**" in markdown.table(table) and r"\textbf{70.0}" in latex.table(table)
    save_table(table, tmp_path / "tables")
    assert {file.suffix for file in (tmp_path / "tables").iterdir()} == {".csv", ".md", ".tex"}


def test_domains_have_a_table_of_their_own_in_the_same_order(chosen):
    summary = summary_table(method_runs(chosen)[0])
    results, domains = (make(summary, "photos", "x") for make in (result_table, domain_table))
    assert domains.header == ["method", "seeds (± sd)", "d0", "d1"] and not {"d0", "d1"} & set(results.header)
    assert domains.rows == [["• boda", "1", "90.0", "50.0"], ["erm", "2", "75.0 ± 7.1", "15.0 ± 7.1"]]
    assert domains.emphasised == {(0, 2), (0, 3)} and [row[0] for row in results.rows] == ["• boda", "erm"]
    assert set(domains.numbers["kind"]) == {"domain"} and set(results.numbers["kind"]) == {"metric"}


def test_with_dg_seeds_are_tested_on_different_samples_and_compared_one_by_one(make_run, tmp_path):
    hits = {("erm", 0): (10, 4), ("erm", 1): (12, 3), ("boda", 0): (16, 9), ("boda", 1): (19, 8)}
    for (algorithm, seed), own in hits.items():
        for d in (0, 1):
            right, totals = [[0, 0], [0, 0]], [[0, 0], [0, 0]]
            right[d], totals[d] = own, [20 + seed, 10 - seed]
            spec = {"algorithm": algorithm, "seed": seed, "protocol": "dg", "unseen": f"d{d}"}
            make_run(f"{algorithm}{seed}{d}", right, totals=totals, **spec)
    chosen = read_runs([tmp_path]).chosen
    means = {method: sum(sum(hits[method, seed]) / 30 for seed in (0, 1)) / 2 for method in ("erm", "boda")}
    row = significance_table(method_runs(chosen)[0]).iloc[0]
    assert (row["method"], row["against"]) == ("erm", "boda")
    assert row["difference"] == pytest.approx(100 * (means["erm"] - means["boda"]))
    assert row["low"] < row["difference"] < row["high"] and row["p"] < 0.05
    summary = summary_table(method_runs(chosen)[0])
    accuracy, class_mean = (cell(summary, "erm", name) for name in ("accuracy", "class mean"))
    assert accuracy["mean"] == pytest.approx(100 * means["erm"])
    assert class_mean["mean"] == pytest.approx(100 * ((10 / 20 + 4 / 10) / 2 + (12 / 21 + 3 / 9) / 2) / 2)
    assert accuracy["error"] == pytest.approx(100 * abs(14 / 30 - 15 / 30) / 2 / math.sqrt(2))
    assert accuracy["low"] < accuracy["mean"] < accuracy["high"]
    make_run("other", [[9, 8], [7, 6]])
    other = summary_table(method_runs(read_runs([tmp_path / "other"]).chosen)[0])
    assert "accuracy" not in set(other["metric"]) and other["error"].isna().all()


def test_all_methods_are_tested_against_the_best_or_a_baseline_and_corrected(make_run, tmp_path):
    for name, hits, last in (("erm", 30, 30), ("boda", 38, 38), ("coral", 38, 37), ("irm", 12, 12)):
        make_run(name, [[hits, hits], [hits, last]], totals=[[40, 40]] * 2, algorithm=name)
    chosen = read_runs([tmp_path]).chosen
    table = significance_table(method_runs(chosen)[0], "boda")
    assert set(table["against"]) == {"boda"} and table["method"].tolist() == ["coral", "erm", "irm"]
    assert table["adjusted"].tolist() == holm(table["p"]).tolist()
    sure = dict(zip(table["method"], table["adjusted"] < 0.05, strict=True))
    assert sure == {"coral": False, "erm": True, "irm": True}
    said = verdict(table, find("accuracy"))
    assert "boda" in said and "2 significantly worse" in said and "Holm" in said
    over = significance_table(method_runs(chosen)[0], "erm")
    assert set(over["against"]) == {"erm"} and over.set_index("method")["difference"]["boda"] == pytest.approx(20)
    assert "2 significantly better" in verdict(over, find("accuracy"))


def test_seeds_of_one_method_do_not_differ_and_one_seed_says_less(make_run, tmp_path):
    rng = np.random.default_rng(0)
    for seed in range(6):
        name = "da" if seed < 3 else "boda"  # two names of one method
        make_run(f"{seed}", rng.binomial(40, 0.7, (2, 2)), totals=[[40, 40]] * 2, algorithm=name, seed=seed % 3)
    make_run("one", [[28, 28]] * 2, totals=[[40, 40]] * 2, algorithm="irm")
    results = Results(read_runs([tmp_path]), baseline="da")
    tests = results.tests.set_index("method")
    assert tests.loc["boda", "adjusted"] > 0.05 and tests.loc["boda", "about"] == AGAIN
    assert tests.loc["irm", "about"] == THESE
    page = write_report(tmp_path / "report", results, files=False).read_text(encoding="utf-8")
    assert f"{AGAIN}: no significant difference to 1 other method" in page
    assert "A single seed shows how these models differ" in page


def test_without_validation_samples_a_baseline_is_needed(make_run, tmp_path):
    for name in ("erm", "boda"):
        folder = make_run(name, [[30, 30]] * 2, totals=[[40, 40]] * 2, algorithm=name)
        result = RunFolder(folder).finished_result()
        none = dict.fromkeys(("average", "worst_domain", "pair_average", "worst_pair"))
        write_json(folder / "result.json", replace(result, validation=replace(result.validation, **none)))
    results = Results(read_runs([tmp_path]))
    assert results.tests.empty
    page = write_report(tmp_path / "report", results, files=False).read_text(encoding="utf-8")
    assert "Name a --baseline" in page
    assert len(Results(results.runs, baseline="erm").tests) == 1


def test_what_follows_the_mean_is_what_the_header_says(make_run, tmp_path):
    for seed, hits in enumerate((4, 6, 8)):
        make_run(f"{seed}", [[hits, hits]] * 2, seed=seed)
    runs = read_runs([tmp_path])
    for spread, error in (("sd", 20.0), ("se", 20 * (2 / 3) ** 0.5 / 3**0.5)):
        summary = Results(runs, spread=spread).summary
        table = result_table(summary, "photos", "x")
        assert table.header[1] == f"seeds (± {spread})" and table.rows[0][2] == f"60.0 ± {error:.1f}"


def test_the_table_for_a_paper_has_a_caption_that_explains_it(make_run, tmp_path):
    for name, hits in (("boda", 38), ("irm", 12)):
        for seed in (0, 1):
            make_run(f"{name}{seed}", [[hits - seed, hits]] * 2, totals=[[40, 40]] * 2, algorithm=name, seed=seed)
    chosen = read_runs([tmp_path]).chosen
    table = paper_table(
        summary_table(method_runs(chosen)[0]), significance_table(method_runs(chosen)[0]), "photos", "photos"
    )
    assert table.header[:2] == ["method", "pair average"] and len(table.header) <= 6
    assert table.rows[1][0] == "irm" and table.rows[1][1].endswith("†") and "†" not in table.rows[0][1]
    save_floating(table, tmp_path)
    text = (tmp_path / "paper-photos.tex").read_text()
    for part in (r"\begin{table}", r"\caption{", r"\label{tab:paper-photos}", r"$^\dagger$", "Holm", r"\textbf{94.4"):
        assert part in text


def test_of_methods_that_are_equal_on_validation_and_cost_the_first_name_is_the_reference(make_run, tmp_path):
    for folder, name in (("a", "mmd"), ("b", "coral")):
        make_run(folder, [[10, 6], [4, 0]], algorithm=name)
    table = significance_table(method_runs(read_runs([tmp_path]).chosen)[0])
    assert table["against"].tolist() == ["coral"]
