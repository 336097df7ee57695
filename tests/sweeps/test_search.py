"""Search with Optuna: proposals from validation accuracies, pruning of poor trials, and the same after a stop."""

from dataclasses import fields, replace
from statistics import median

import msgspec
import numpy as np
import pytest

from crosstail import algorithms
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform
from crosstail.storage import write_json
from crosstail.sweeps import drive, search
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Store
from crosstail.training.folder import RunFolder

pytest.importorskip("optuna", reason="needs the extra [optuna]")


@pytest.fixture(scope="module")
def plan(shared):
    long_enough = replace(shared, steps=32, width=16, evaluations=4)  # for trials to differ
    return make(long_enough, ["erm", "boda"], trials=12, seeds=2, search="tpe")


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory, run, outcome_of):
    """The store of a search that nothing disturbed, and what it ended with."""
    store = Store(tmp_path_factory.mktemp("whole"))
    outcomes = run(plan, store)
    assert set(outcomes.values()) == {"done", "pruned"}
    return store, outcome_of(store)


def test_the_first_trial_is_the_defaults_and_the_others_are_proposed(plan, whole):
    store, _ = whole
    for method in plan.methods:
        (defaults,) = plan.drawn[method]
        trials = store.trials(plan, method)
        assert len(trials) == 12 and trials[0] == defaults
        assert len({msgspec.json.encode(hparams) for hparams in trials}) == 12
        ranges = {f.name: f.metadata["search"] for f in fields(algorithms.find(method).Hparams)}
        for hparams in trials[1:]:
            assert set(hparams) == set(ranges)
            for name, value in hparams.items():
                if ranges[name] is None:
                    assert value == defaults[name]
                else:
                    assert ranges[name].low * 0.99999 <= value <= ranges[name].high * 1.00001


def test_every_trial_is_finished_or_pruned_and_the_pruned_are_not_chosen(plan, whole):
    _, outcome = whole
    for choice in outcome["choices"]:
        assert choice["finished"] + choice["pruned"] == 12 and choice["missing"] == 0 and choice["pruned"] > 0
    assert [row["seeds"] for row in outcome["table"]] == [2, 2]


def test_a_search_that_is_stopped_ends_as_one_that_is_not(plan, tmp_path, whole, run, outcome_of):
    store = Store(tmp_path)
    for stop in (3, 13, 21):
        with launcher("inline", store, Resources()) as crew:
            for done, _ in enumerate(drive.sweep(plan, Store(tmp_path), crew)):
                if done == stop:
                    break
    assert set(run(plan, store).values()) <= {"done", "kept", "pruned"}
    assert outcome_of(store) == whole[1]


def test_proposals_depend_on_validation_and_not_on_test(plan, whole, monkeypatch):
    store, _ = whole
    expected = search.propose(plan, "erm", store, 10)
    results = Store(store.path).results()
    blind = {key: msgspec.structs.replace(summary, test={}) for key, summary in results.items()}
    monkeypatch.setattr(Store, "results", lambda self: blind)
    assert search.propose(plan, "erm", store, 10) == expected == store.proposals("erm")[10:]
    for summary in blind.values():
        summary.validation["pair_average"] = 1 - summary.validation["pair_average"]
    assert search.propose(plan, "erm", store, 10) != expected


def test_the_limits_are_medians_of_the_best_so_far_of_the_finished(plan, whole):
    store, _ = whole
    for trial in range(6):
        assert search.limits(plan, "erm", store, trial) == {}  # there are too few before the first proposals
    curves = []
    for hparams in store.trials(plan, "erm")[:6]:
        folder = store.path / "runs" / plan.runs("erm", hparams)[0].key
        if folder.exists():
            accuracies = [record.validation.pair_average for record in RunFolder(folder).records()]
            curves.append(np.maximum.accumulate(accuracies))
    assert len(curves) >= 5
    expected = {(1, 8 * i): median(curve[i] for curve in curves) for i in (1, 2, 3, 4)}
    for trial in range(6, 11):
        assert search.limits(plan, "erm", store, trial) == {None: expected}
    assert set(search.limits(plan, "erm", store, 11)[None]) == set(expected)


def test_random_search_prunes_nothing(small, whole):
    store, _ = whole
    assert search.limits(small, "erm", store, 11) == {}


def test_with_dg_every_unseen_domain_and_seed_has_a_search_of_its_own(shared, tmp_path, run):
    plan = make(replace(shared, protocol="dg", steps=4), ["erm"], trials=7, seeds=2, search="tpe")
    store = Store(tmp_path)
    assert len(run(plan, store)) == 7 * 4
    rates = [[hparams["lr"] for hparams in store.trials(part, "erm")] for part in plan.searches]
    assert all(len(own) == 7 and own[0] == rates[0][0] for own in rates)
    assert rates[0][1:6] != rates[1][1:6]  # random before there is anything to learn from, but not the same by seed


def test_any_distribution_is_searched_from_end_to_end():
    for place, expected in ((0.0, 1e-3), (0.5, 1e-1), (1.0, 1e1)):
        assert LogUniform(1e-3, 1e1).draw(search.At(place)) == pytest.approx(expected)
        assert Uniform(2.0, 4.0).draw(search.At(place)) == 2 + 2 * place
    assert [Choice("a", "b", "c").draw(search.At(place)) for place in (0.0, 0.34, 0.99, 1.0)] == ["a", "b", "c", "c"]


def test_the_search_finds_what_is_good(shared, tmp_path, fake_result):
    """On fake results with one best learning rate, later proposals are nearer to it than the first."""
    store = Store(tmp_path)
    plan = make(shared, ["erm"], trials=41, search="tpe")
    store.add(plan)

    def distance(proposal):
        return abs(proposal.unit["lr"] - 0.8)

    while len(store.proposals("erm")) < 40:
        known = len(store.proposals("erm"))
        store.propose("erm", known, search.propose(plan, "erm", store, known))
        for proposal in store.proposals("erm"):
            (spec,) = plan.runs("erm", proposal.hparams)
            if not store.has(spec.key):
                folder = store.path / "runs" / spec.key
                folder.mkdir(parents=True)
                write_json(folder / "result.json", fake_result(spec, 1 - distance(proposal)))
    distances = [distance(proposal) for proposal in store.proposals("erm")]
    assert len(distances) == 40 and median(distances[-20:]) < 0.2  # 0.3 if they were random
