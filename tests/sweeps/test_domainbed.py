"""Domain generalization end to end, against loops that follow DomainBed's scripts.

`model_selection.py` (training-domain validation set) takes, for every seed and unseen domain, the hyperparameters and
the step with the highest mean validation accuracy over the training domains, and reports the accuracy on the larger
part of the unseen domain. `collect_results.py` reports the mean over seeds and numpy's std / √n, per unseen domain and
for the mean over unseen domains.
"""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from crosstail.metrics import PairAccuracy
from crosstail.reports.compare.method_runs import method_runs
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.tables import hparams_table, nu_table, summary_table
from crosstail.reports.compare.text_tables import domain_table, result_table
from crosstail.storage import write_json
from crosstail.sweeps.plan import Plan, with_draws
from crosstail.sweeps.select import as_file, choices, table
from crosstail.sweeps.store import Store
from crosstail.training.result import Evaluation, SplitAccuracy, best_on_validation

DOMAINS, TRIALS, SEEDS, STEPS = ("art", "photo", "sketch"), 4, 3, 3
METHODS = ("erm", "boda")


@pytest.fixture(scope="module")
def made(shared, tmp_path_factory, fake_result):
    """Every run of a dg plan with random hits, and the hits by (method, unseen, seed, trial, step)."""
    chance = np.random.default_rng(0)
    shared = replace(shared, protocol="dg")
    plan = with_draws(Plan(shared=shared, methods=METHODS, unseen=DOMAINS, trials=TRIALS, seeds=SEEDS))
    store = Store(tmp_path_factory.mktemp("dg"))
    store.add(plan)
    hits = {}
    for part in plan.searches:
        unseen, seed = DOMAINS.index(part.shared.unseen), part.shared.seed
        totals = {"validation": np.array([[6, 2], [3, 9], [5, 1]]), "test": np.zeros((3, 2), int)}
        totals["validation"][unseen] = 0
        totals["test"][unseen] = [30 + seed, 10 - seed]  # seeds have other test samples
        for method in METHODS:
            for trial, hparams in enumerate(part.drawn[method]):
                records = []
                for step in range(STEPS):
                    own = {split: chance.integers(0, total + 1) for split, total in totals.items()}
                    hits[method, unseen, seed, trial, step] = own, totals
                    now = {split: SplitAccuracy.of(PairAccuracy(own[split], totals[split])) for split in totals}
                    records.append(Evaluation(stage=1, step=step, seconds=0.0, losses={}, **now))
                (spec,) = part.runs(method, hparams)
                best = best_on_validation(records, spec.selected_on)
                facts = {"domains": list(DOMAINS), "classes": ["a", "b"], "counts": [[5, 5]] * 3}
                result = msgspec.structs.replace(fake_result(spec), validation=best.validation, test=best.test, **facts)
                folder = store.path / "runs" / spec.key
                folder.mkdir(parents=True)
                write_json(folder / "result.json", result)
    return SimpleNamespace(plan=plan, store=store, hits=hits)


def selected(hits, method, unseen, seed):
    """Trial, accuracy, class mean and validation accuracy of the best trial (the last of ties) at its best step."""
    best = -1.0
    for trial in range(TRIALS):
        best_of_run = -1.0
        for step in range(STEPS):  # the first of ties
            own, totals = hits[method, unseen, seed, trial, step]
            trained = [d for d in range(len(DOMAINS)) if d != unseen]
            validation = [sum(own["validation"][d]) / sum(totals["validation"][d]) for d in trained]
            if sum(validation) / len(validation) > best_of_run:
                best_of_run = sum(validation) / len(validation)
                right, tested = own["test"][unseen], totals["test"][unseen]
                run = trial, sum(right) / sum(tested), (right[0] / tested[0] + right[1] / tested[1]) / 2, best_of_run
        if best_of_run >= best:
            best, found = best_of_run, run
    return found


def mean_and_error(values):
    """As `format_mean` of collect_results.py."""
    return float(np.mean(values)), float(np.std(np.array(values) / np.sqrt(len(values))))


def test_every_unseen_domain_and_seed_has_its_own_best_trial(made):
    found = choices(made.store, made.store.results())
    assert len(found) == len(METHODS) * len(DOMAINS) * SEEDS
    chosen = set()
    for choice in found:
        unseen, seed = DOMAINS.index(choice.plan.shared.unseen), choice.plan.shared.seed
        trial, _, _, validation = selected(made.hits, choice.method, unseen, seed)
        assert choice.trial == trial and choice.validation == pytest.approx(validation)
        draws = (made.plan.drawn, *made.plan.redrawn)[seed]
        assert choice.hparams == draws[choice.method][trial]
        assert as_file(found)[f"{choice.method}, unseen {DOMAINS[unseen]}, seed {seed}"] == choice.hparams
        chosen.add(trial)
    assert len(chosen) > 1  # else the test would not tell


@pytest.fixture(scope="module")
def expected(made):
    """Mean and standard error in % by (method, column), by loops."""
    found = {}
    for method in METHODS:
        for unseen, name in enumerate(DOMAINS):
            values = [100 * selected(made.hits, method, unseen, seed)[1] for seed in range(SEEDS)]
            found[method, name] = mean_and_error(values)
        for place, name in ((1, "accuracy"), (2, "class mean")):
            values = []
            for seed in range(SEEDS):
                over = [100 * selected(made.hits, method, unseen, seed)[place] for unseen in range(len(DOMAINS))]
                values.append(sum(over) / len(over))
            found[method, name] = mean_and_error(values)
    return found


def test_the_sweep_reports_domainbeds_averages(made, expected):
    results = made.store.results()
    rows = table(choices(made.store, results), results)
    assert [row.method for row in rows] == list(METHODS)
    for row in rows:
        assert (row.seeds, row.planned, row.trial) == (SEEDS, SEEDS, None)
        shown = {"accuracy": row.accuracy["accuracy"], "class mean": row.accuracy["class_mean"], **row.unseen}
        for name, (mean, error) in shown.items():
            assert (100 * mean, 100 * error) == pytest.approx(expected[row.method, name])
        assert set(shown) == {"accuracy", "class mean", *DOMAINS}


def test_a_report_over_the_sweep_has_the_same_averages(made, expected):
    runs = read_runs([made.store.path])
    assert len(runs.table) == len(METHODS) * len(DOMAINS) * TRIALS * SEEDS and runs.skipped == ()
    chosen = runs.chosen
    found, missing = method_runs(chosen)
    assert missing == [] and len(found) == len(METHODS) * SEEDS  # one name for each method, whatever was selected
    summary = summary_table(method_runs(chosen)[0])
    rows = {(row["method"], row["metric"]): row for row in summary.to_dict("records")}
    for key, spread in expected.items():
        assert (rows[key]["mean"], rows[key]["error"]) == pytest.approx(spread) and rows[key]["n"] == SEEDS
    (data,) = set(chosen["data"])
    shown = result_table(summary, data, "x")
    metrics = ["accuracy", "class mean", "worst domain", "10th percentile", "worst pair"]
    assert shown.header == ["method", "seeds (± se)", *metrics]
    assert domain_table(summary, data, "y").header == ["method", "seeds (± se)", *DOMAINS]
    best = max(METHODS, key=lambda method: expected[method, "accuracy"][0])
    assert shown.rows[0][0].endswith(best) and "accuracy" in shown.title
    mean, error = expected[best, "class mean"]
    assert shown.rows[0][3] == f"{mean:.1f} ± {error:.1f}"


def test_the_report_lists_what_was_selected_for_each(made):
    chosen = read_runs([made.store.path]).chosen
    listed = hparams_table(chosen)
    named = [name for runs in listed[listed["method"] == "erm"]["runs"] for name in runs.split(", ")]
    assert sorted(named) == sorted(f"unseen {domain} seed {seed}" for domain in DOMAINS for seed in range(SEEDS))
    assert nu_table(method_runs(chosen)[0]).empty  # ν was selected, not varied


def test_the_validation_accuracy_is_averaged_over_domains_not_pairs(made):
    """The domains differ in size and balance, so that the two disagree on some run."""
    own, totals = made.hits["erm", 0, 0, 0, 0]
    accuracy = PairAccuracy(own["validation"], totals["validation"])
    assert made.plan.shared.selected_on == "average" and accuracy.average != accuracy.pair_average
