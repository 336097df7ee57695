"""Selection and status: on made results, against loops over them."""

import json
import random
from dataclasses import replace
from statistics import mean, stdev

import pytest

from crosstail.sweep.plan import make
from crosstail.sweep.select import METRICS, as_file, choices, table
from crosstail.sweep.status import status
from crosstail.sweep.store import Store


def finish(store, spec, validation, test=0.0, seconds=1.0):
    """A finished run that nobody has trained."""
    parts = {"validation": validation, "test": test}
    accuracies = {part: {**dict.fromkeys(METRICS, figure), "shots": {}} for part, figure in parts.items()}
    common = {"selected_step": 1, "seconds": seconds, "transferability": {}}
    folder = store.path / "runs" / spec.key
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"spec": spec.to_json(), **common, **accuracies}))


def fail(store, spec, kind="error"):
    store.fail(store.claim(spec), kind, ["first", "last"])


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def plan(shared, store):
    plan = make(shared, ["erm", "boda:retrain"], trials=5, seeds=3)
    store.add(plan)
    return plan


def trial(plan, entry, number):
    (spec,) = plan.runs(entry, plan.drawn[entry][number])
    return spec


def test_the_best_on_validation_is_chosen_whatever_the_test_figures_are(plan, store):
    for number, (validation, test) in enumerate([(0.5, 0.9), (0.7, 0.1), (0.6, 0.8), (0.7, 0.9), (0.2, 1.0)]):
        finish(store, trial(plan, "erm", number), validation, test)
    erm, boda = choices(store, store.results())
    assert (erm.trial, erm.validation, erm.hparams) == (1, 0.7, plan.drawn["erm"][1])  # the first of equals
    assert (erm.finished, erm.failed, erm.missing) == (5, {}, 0)
    assert (boda.trial, boda.validation, boda.hparams, boda.missing) == (None, None, {}, 5)
    assert as_file([erm, boda]) == {"erm": plan.drawn["erm"][1]}


def test_no_test_figure_is_looked_at(plan, store):
    """Selection is the same, to the digit, whatever is in the test half of the results."""
    chance = random.Random(0)
    figures = [chance.random() for _ in range(5)]
    for number, figure in enumerate(figures):
        finish(store, trial(plan, "erm", number), figure)
    results = store.results()
    expected = choices(store, results)[0]
    for summary in results.values():
        summary.test = None
    assert choices(store, results)[0] == expected
    assert expected.trial == max(range(5), key=lambda number: figures[number])


def test_only_finished_runs_count_and_the_others_are_told(plan, store):
    finish(store, trial(plan, "erm", 1), 0.4)
    fail(store, trial(plan, "erm", 2))
    fail(store, trial(plan, "erm", 3), "pruned")
    erm, _ = choices(store, store.results())
    assert (erm.trial, erm.finished, erm.pruned, erm.missing) == (1, 1, 1, 2)
    assert {number: failure.error for number, failure in erm.failed.items()} == {2: ["first", "last"]}
    finish(store, trial(plan, "erm", 2), 0.9)  # a failure that was mended counts no more
    erm, _ = choices(store, store.results())
    assert (erm.trial, erm.failed) == (2, {})


def test_the_table_is_mean_and_deviation_over_the_finished_seeds(plan, store):
    words = plan.drawn["erm"][3]
    tests = {0: 0.5, 1: 0.75, 2: 0.25}
    finish(store, trial(plan, "erm", 3), 0.9, tests[0])
    for seed in (1, 2):
        before = table(choices(store, store.results()), store.results())[0]
        assert (before.seeds, before.planned) == (seed, 3)
        finish(store, plan.runs("erm", words, seed)[0], 0.1, tests[seed])
    erm, boda = table(choices(store, store.results()), store.results())
    assert erm.seeds == 3
    for metric in METRICS:
        assert erm.figures[metric] == (mean(tests.values()), stdev(tests.values()))
        assert boda.figures[metric] == (None, None)


def test_one_seed_has_no_deviation(plan, store):
    finish(store, trial(plan, "erm", 0), 0.9, 0.5)
    assert table(choices(store, store.results()), store.results())[0].figures.average == (0.5, None)


def test_dg_is_averaged_over_the_unseen_domains_first(shared, store):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=3, seeds=2)
    store.add(plan)
    chance = random.Random(1)
    figures = {(number, seed): [chance.random(), chance.random()] for number in range(3) for seed in range(2)}
    for number in range(3):
        for spec, figure in zip(plan.runs("erm", plan.drawn["erm"][number]), figures[number, 0], strict=True):
            finish(store, spec, figure, 1 - figure)
    best = max(range(3), key=lambda number: sum(figures[number, 0]) / 2)
    (choice,) = choices(store, store.results())
    assert choice.trial == best and choice.validation == pytest.approx(sum(figures[best, 0]) / 2)
    for spec, figure in zip(plan.runs("erm", choice.hparams, 1), figures[best, 1], strict=True):
        finish(store, spec, figure, 1 - figure)
    (row,) = table([choice], store.results())
    seeds = [1 - sum(figures[best, seed]) / 2 for seed in range(2)]
    assert row.figures.average == pytest.approx((sum(seeds) / 2, abs(seeds[0] - seeds[1]) / 2**0.5))


def test_a_trial_with_one_fold_missing_is_not_finished(shared, store):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=2)
    store.add(plan)
    first, second = (plan.runs("erm", words) for words in plan.drawn["erm"])
    finish(store, first[0], 0.9)
    for spec in second:
        finish(store, spec, 0.1)
    (choice,) = choices(store, store.results())
    assert (choice.trial, choice.finished, choice.missing) == (1, 1, 1)
    fail(store, first[1])
    (choice,) = choices(store, store.results())
    assert (choice.finished, list(choice.failed), choice.missing) == (1, [0], 0)


def test_data_without_validation_samples_are_told(plan, store):
    finish(store, trial(plan, "erm", 0), None)
    with pytest.raises(ValueError, match="no validation samples: there is nothing to select on"):
        choices(store, store.results())


def test_algorithms_that_were_added_later_are_selected_too(plan, store, shared):
    store.add(make(shared, ["coral"], trials=2))
    finish(store, trial(plan, "erm", 0), 0.5)
    found = {choice.entry: (choice.plan.trials, choice.missing) for choice in choices(store, store.results())}
    assert found == {"erm": (5, 4), "boda:retrain": (5, 5), "coral": (2, 2)}


def test_status_counts_runs_and_the_time_that_is_left(plan, store):
    rows = {row.entry: row for row in status(store)}
    assert rows["erm"].planned == 7 and rows["erm"].done == 0 and rows["erm"].remaining is None
    finish(store, trial(plan, "erm", 0), 0.9, seconds=10)
    finish(store, trial(plan, "erm", 1), 0.5, seconds=30)
    leases = [store.claim(trial(plan, "erm", 2)), store.claim(trial(plan, "boda:retrain", 2))]
    fail(store, trial(plan, "erm", 3))
    fail(store, trial(plan, "erm", 4), "pruned")
    erm, boda = status(Store(store.path))
    assert (erm.done, erm.running, erm.failed, erm.pruned) == (2, 1, 1, 1)
    assert erm.remaining == (7 - 2 - 2) * 20 / 2  # by two workers, one of which is busy with the other algorithm
    assert (boda.done, boda.running, boda.remaining) == (0, 1, None)
    for lease in leases:
        lease.give_back()
    assert [row.running for row in status(store)] == [0, 0]


def test_status_of_a_whole_sweep(small, tmp_path, run):
    store = Store(tmp_path)
    run(small, store)
    for row in status(store):
        assert (row.done, row.planned, row.running, row.failed, row.remaining) == (4, 4, 0, 0, 0.0)
