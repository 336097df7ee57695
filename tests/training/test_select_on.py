"""--select-on: the step of a run, with and without averaged weights, and numbers that a second stage chooses."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy.special import log_softmax
from tests.metrics.answered import answered

from crosstail.metrics import criteria, find, value_on
from crosstail.second_stages._choice import first_best
from crosstail.second_stages._stage import Features
from crosstail.testing import save_separable
from crosstail.testing.easy_data import changed
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.training.result import SplitAccuracy, best_on_validation, selection_score

CRITERIA = criteria()


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """A run whose validation set lacks a pair, and whose metrics go up and down."""
    path = tmp_path_factory.mktemp("data") / "vectors.npz"
    save_separable(path, [[30, 8, 2], [0, 9, 25]])
    with changed(path) as content:
        content["x"] = content["x"] + np.random.default_rng(0).normal(size=content["x"].shape).astype(np.float32)
        content["split"][(content["split"] == "val") & (content["domain"] == 0) & (content["y"] == 2)] = "train"
    return RunSpec(dataset=str(path), algorithm="erm", width=4, steps=24, batch_size=4, evaluations=12)


@pytest.fixture(scope="module")
def runs(spec, tmp_path_factory):
    """The same run, selected on each metric."""
    place = tmp_path_factory.mktemp("runs")
    every = {"hparams": {"lr": 0.3}, "average": "moving"}
    return {on: train_run(replace(spec, select_on=on, **every), place / on) for on in CRITERIA}


def test_the_step_is_the_first_that_is_best_on_validation(runs):
    chosen = set()
    for on, run in runs.items():
        best, step = None, None
        for record in run.folder.records():
            validation = record.averaged.validation
            value = validation.value(on)
            tie = validation.pair_average if on.startswith("worst") else 0
            value = (find(on).sign * value, tie)
            if best is None or value > best:
                best, step = value, record.step
        assert run.result.selected_step == step
        assert run.result.validation.value(on) == pytest.approx(abs(best[0]))
        chosen.add(step)
    assert len(chosen) > 1  # the criteria differ


@pytest.mark.parametrize("on", ["auroc", "as_they_come"])
def test_a_fitted_second_stage_is_recorded_with_it(spec, tmp_path, on):
    """Its metric comes from the log probabilities that are kept; those for the prevalence are fitted on validation."""
    run = train_run(replace(spec, second_stage="ncm", select_on=on), tmp_path)
    found, kept = run.records[-1], run.held_out
    prepared = find(on).prepared or (lambda answers, _: answers)
    for name in ("validation", "test"):
        expected = value_on(prepared(getattr(kept, name), kept.validation), on)
        assert getattr(found, name).value(on) == pytest.approx(expected)


def test_the_raw_weights_beside_the_averaged_ones_are_selected_on_it_too(runs):
    for on, run in runs.items():
        assert run.result.raw.selected_step == best_on_validation(run.folder.records(), on).step


def test_training_does_not_depend_on_what_is_selected_on(runs):
    def trained(run):
        plain = (
            msgspec.structs.replace(of, others=msgspec.UNSET) for r in run.records for of in (r.validation, r.test)
        )
        return [r.losses for r in run.records], list(plain)

    first, *others = map(trained, runs.values())
    assert all(other == first for other in others)
    assert runs["auroc"].records[0].validation.others.keys() == {"auroc"}


def test_the_recorded_metrics_are_those_of_the_kept_probabilities(runs):
    run = runs["macro_f1"]
    held_out = run.held_out.validation
    log_p = held_out.log_p.astype(float)[np.arange(len(held_out)), held_out.y]
    of_pairs = [-log_p[held_out.pair == pair].mean() for pair in np.unique(held_out.pair)]
    assert run.result.validation.log_loss == pytest.approx(np.mean(of_pairs), rel=1e-3)
    assert (np.asarray(run.result.validation.totals) == 0).any()  # a pair without validation samples is left out


def test_the_default_has_one_spelling(spec):
    plain, dg = resolve(spec), resolve(replace(spec, protocol="dg"))
    assert (plain.selected_on, dg.selected_on) == ("pair_average", "average")
    assert resolve(replace(spec, select_on="pair_average")).key == plain.key
    assert resolve(replace(spec, protocol="dg", select_on="average")).key == dg.key
    assert resolve(replace(spec, protocol="dg", select_on="pair_average")).selected_on == "pair_average"


def test_an_unknown_metric_is_named_with_the_one_that_was_meant():
    with pytest.raises(ValueError, match=r"worst_pairs.*'worst_pair'"):
        RunSpec(dataset="a", select_on="worst_pairs")


def test_evaluations_cannot_be_selected_by_what_they_lack():
    old = SplitAccuracy(average=0.5, worst_domain=0.5, pair_average=0.5, worst_pair=0.5, hits=[[1]], totals=[[2]])
    assert selection_score(old, "pair_average") == 0.5
    with pytest.raises(ValueError, match=r"records.jsonl.*macro_f1"):
        selection_score(old, "macro_f1")


@pytest.mark.parametrize("on", CRITERIA)
def test_a_number_is_chosen_by_what_is_selected_on(on):
    rng = np.random.default_rng(1)
    y, domain, scores = rng.integers(0, 3, 40), rng.integers(0, 2, 40), rng.normal(size=(40, 3))
    scores[np.arange(40), y] += 1
    bias, values = np.array([2.0, 0.0, -1.0]), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    features = Features(np.zeros((40, 1), np.float32), y, domain, np.ones((2, 3), np.int64), select_on=on)
    found = []
    for value in values:
        said = scores - value * bias
        of = answered(said.argmax(1), log_softmax(said, axis=1), y, domain, 2)
        judged = round(find(on).sign * value_on(of, on), 9)
        found.append((judged, of.value().pair_average if "worst" in on else 0))
    best = max(found)
    assert first_best(values, lambda value: scores - value * bias, features) == values[found.index(best)]
