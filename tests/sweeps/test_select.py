"""Selection and status: on fake results, against loops over them."""

import random
from dataclasses import replace
from statistics import mean, stdev

import msgspec
import pytest

from crosstail.metrics import VIEWS
from crosstail.storage import read_json, write_json
from crosstail.sweeps.plan import make
from crosstail.sweeps.select import as_file, choices, table
from crosstail.sweeps.status import status
from crosstail.sweeps.store import Store
from crosstail.training.result import KnownDomain, RunResult


@pytest.fixture
def finish(fake_result):
    """Record a run as finished that was never trained."""

    def finish(store, spec, validation, test=0.0, seconds=1.0):
        folder = store.path / "runs" / spec.key
        folder.mkdir(parents=True)
        write_json(folder / "result.json", fake_result(spec, validation, test, seconds))

    return finish


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


def trial(plan, method, number):
    (spec,) = plan.runs(method, plan.drawn[method][number])
    return spec


def test_the_best_on_validation_is_chosen_whatever_the_test_accuracy(plan, store, finish):
    for number, (validation, test) in enumerate([(0.5, 0.9), (0.7, 0.1), (0.6, 0.8), (0.7, 0.9), (0.2, 1.0)]):
        finish(store, trial(plan, "erm", number), validation, test)
    erm, boda = choices(store, store.results())
    assert (erm.trial, erm.validation, erm.hparams) == (1, 0.7, plan.drawn["erm"][1])  # the first of equals
    assert (erm.finished, erm.failed, erm.missing) == (5, {}, 0)
    assert (boda.trial, boda.validation, boda.hparams, boda.missing) == (None, None, {}, 5)
    assert as_file([erm, boda]) == {"erm": plan.drawn["erm"][1]}


def test_selection_does_not_depend_on_test_accuracy(plan, store, finish):
    chance = random.Random(0)
    accuracies = [chance.random() for _ in range(5)]
    for number, accuracy in enumerate(accuracies):
        finish(store, trial(plan, "erm", number), accuracy)
    results = store.results()
    expected = choices(store, results)[0]
    blind = {key: msgspec.structs.replace(summary, test={}) for key, summary in results.items()}
    assert choices(store, blind)[0] == expected
    assert expected.trial == max(range(5), key=lambda number: accuracies[number])


def test_only_finished_runs_count_and_the_others_are_reported(plan, store, finish):
    finish(store, trial(plan, "erm", 1), 0.4)
    fail(store, trial(plan, "erm", 2))
    erm, _ = choices(store, store.results())
    assert (erm.trial, erm.finished, erm.missing) == (1, 1, 3)
    assert {number: failure.error for number, failure in erm.failed.items()} == {2: ["first", "last"]}
    finish(store, trial(plan, "erm", 2), 0.9)  # a failure that was followed by success does not count
    erm, _ = choices(store, store.results())
    assert (erm.trial, erm.failed) == (2, {})


def test_the_table_is_mean_and_deviation_over_the_finished_seeds(plan, store, finish):
    hparams = plan.drawn["erm"][3]
    tests = {0: 0.5, 1: 0.75, 2: 0.25}
    finish(store, trial(plan, "erm", 3), 0.9, tests[0])
    for seed in (1, 2):
        before = table(choices(store, store.results()), store.results())[0]
        assert (before.seeds, before.planned) == (seed, 3)
        finish(store, plan.runs("erm", hparams, seed)[0], 0.1, tests[seed])
    erm, boda = table(choices(store, store.results()), store.results())
    assert erm.seeds == 3
    for metric in VIEWS:
        assert erm.accuracy[metric] == (mean(tests.values()), stdev(tests.values()))
        assert boda.accuracy[metric] == (None, None)


def test_one_seed_has_no_deviation(plan, store, finish):
    finish(store, trial(plan, "erm", 0), 0.9, 0.5)
    assert table(choices(store, store.results()), store.results())[0].accuracy["average"] == (0.5, None)


def test_with_dg_a_search_is_selected_in_as_soon_as_one_of_its_trials_is_finished(shared, store, finish):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=2, seeds=2)
    store.add(plan)
    first = plan.searches[0]
    finish(store, trial(first, "erm", 1), 0.1)
    fail(store, trial(first, "erm", 0))
    found = choices(store, store.results())
    assert [(choice.trial, choice.finished, choice.missing) for choice in found] == [(1, 1, 0), *[(None, 0, 2)] * 3]
    assert list(found[0].failed) == [0]
    assert as_file(found) == {"erm, unseen 0, seed 0": first.drawn["erm"][1]}
    (row,) = table(found, store.results())
    assert (row.seeds, row.planned, row.accuracy["accuracy"]) == (0, 2, (None, None))


def test_with_dg_the_last_of_equal_trials_is_chosen_as_in_domainbed(shared, store, finish):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=4, seeds=1)
    store.add(plan)
    for part in plan.searches:
        for number, validation in enumerate([0.7, 0.5, 0.7, 0.6]):
            finish(store, trial(part, "erm", number), validation)
    assert [choice.trial for choice in choices(store, store.results())] == [2, 2]


def recorded(store, spec, **metrics):
    file = store.path / "runs" / spec.key / "result.json"
    result = read_json(file, RunResult)
    write_json(file, msgspec.structs.replace(result, validation=msgspec.structs.replace(result.validation, **metrics)))


def test_another_metric_may_be_selected_on_after_the_sweep(plan, store, finish):
    for number, (pair_average, log_loss, macro_f1) in enumerate([(0.5, 0.4, 0.1), (0.7, 0.6, 0.3), (0.6, 0.4, 0.5)]):
        finish(store, trial(plan, "erm", number), pair_average)
        recorded(store, trial(plan, "erm", number), log_loss=log_loss, macro_f1=macro_f1)
    results = store.results()
    for on, expected in (("pair_average", (1, 0.7)), ("log_loss", (0, 0.4)), ("macro_f1", (2, 0.5))):
        erm, _ = choices(store, results, select_on=on)
        assert (erm.selected_on, erm.trial, erm.validation) == (on, *expected)
    assert choices(store, results)[0].selected_on == table(choices(store, results), results)[0].selected_on


def test_a_sweep_selects_on_its_own_metric(shared, store, finish):
    plan = make(replace(shared, select_on="log_loss"), ["erm"], trials=3, seeds=1)
    store.add(plan)
    for number, log_loss in enumerate([0.5, 0.3, 0.4]):
        finish(store, trial(plan, "erm", number), 0.1 * number)
        recorded(store, trial(plan, "erm", number), log_loss=log_loss)
    (choice,) = choices(store, store.results())
    assert (choice.selected_on, choice.trial, choice.validation) == ("log_loss", 1, 0.3)


def test_of_trials_with_equal_worst_pairs_the_one_with_the_best_pair_average_is_chosen(plan, store, finish):
    for number, pair_average in enumerate([0.5, 0.7, 0.6]):
        finish(store, trial(plan, "erm", number), pair_average)
        recorded(store, trial(plan, "erm", number), worst_pair=0.0)
    erm, _ = choices(store, store.results(), select_on="worst_pair")
    assert (erm.trial, erm.validation) == (1, 0.0)


def test_results_may_lack_a_metric_to_select_on(plan, store, finish):
    finish(store, trial(plan, "erm", 0), 0.5)
    assert choices(store, store.results(), select_on="worst_pair")[0].trial == 0
    with pytest.raises(ValueError, match=r"result.json.*macro_f1.*worst_pair"):
        choices(store, store.results(), select_on="macro_f1")


def test_status_counts_the_runs_of_all_searches(shared, store, finish):
    plan = make(replace(shared, protocol="dg"), ["erm"], trials=2, seeds=3)
    store.add(plan)
    for part in plan.searches[:2]:
        for number in range(2):
            finish(store, trial(part, "erm", number), 0.5, seconds=10)
    (row,) = status(store)
    assert (row.planned, row.done, row.remaining) == (2 * 2 * 3, 4, 80)


def test_data_without_validation_samples_are_an_error(plan, store, finish):
    finish(store, trial(plan, "erm", 0), None)
    with pytest.raises(ValueError, match="no validation samples"):
        choices(store, store.results())


def test_methods_that_were_added_later_are_selected_too(plan, store, shared, finish):
    store.add(make(shared, ["coral"], trials=2))
    finish(store, trial(plan, "erm", 0), 0.5)
    found = {choice.method: (choice.plan.trials, choice.missing) for choice in choices(store, store.results())}
    assert found == {"erm": (5, 4), "boda:retrain": (5, 5), "coral": (2, 2)}


def test_status_counts_runs_and_estimates_the_remaining_time(plan, store, finish):
    rows = {row.method: row for row in status(store)}
    assert rows["erm"].planned == 7 and rows["erm"].done == 0 and rows["erm"].remaining is None
    finish(store, trial(plan, "erm", 0), 0.9, seconds=10)
    finish(store, trial(plan, "erm", 1), 0.5, seconds=30)
    leases = [store.claim(trial(plan, "erm", 2)), store.claim(trial(plan, "boda:retrain", 2))]
    fail(store, trial(plan, "erm", 3))
    erm, boda = status(Store(store.path))
    assert (erm.done, erm.running, erm.failed) == (2, 1, 1)
    assert erm.remaining == (7 - 2 - 1) * 20 / 2  # by two workers, one of them busy with the other method
    assert (boda.done, boda.running, boda.remaining) == (0, 1, None)
    for lease in leases:
        lease.give_back()
    assert [row.running for row in status(store)] == [0, 0]


def test_status_of_a_whole_sweep(small, tmp_path, run):
    store = Store(tmp_path)
    run(small, store)
    for row in status(store):
        assert (row.done, row.planned, row.running, row.failed, row.remaining) == (4, 4, 0, 0, 0.0)


def test_with_folds_a_trial_is_selected_by_their_mean_and_tested_on_all_of_them(shared, store, fake_result):
    plan = make(replace(shared, folds=2), ["erm"], trials=3, seeds=2)
    store.add(plan)
    assert plan.runs_per_method == 2 * (3 + 1)

    def finish(specs, validation, tables):
        for spec, accuracy, (hits, totals) in zip(specs, validation, tables, strict=True):
            result = fake_result(spec, accuracy)
            own = {"classes": ["c", "e"], "counts": [[1, 1]]}
            for split in ("validation", "test"):
                own[split] = msgspec.structs.replace(getattr(result, split), hits=[hits], totals=[totals])
            (store.path / "runs" / spec.key).mkdir(parents=True)
            write_json(store.path / "runs" / spec.key / "result.json", msgspec.structs.replace(result, **own))

    trials = [plan.runs("erm", hparams) for hparams in plan.drawn["erm"]]
    assert [[spec.fold for spec in specs] for specs in trials] == [[1, 2]] * 3
    tables = [([3, 0], [4, 1]), ([1, 0], [4, 0])]
    finish(trials[0], (0.9, 0.1), tables)
    finish(trials[1], (0.5, 0.7), tables)
    finish(trials[2][:1], (1.0,), tables[:1])  # its other fold is missing
    (choice,) = choices(store, store.results())
    assert (choice.trial, choice.validation, choice.finished, choice.missing) == (1, pytest.approx(0.6), 2, 1)
    finish(plan.finals("erm", choice.hparams)[1], (0.5, 0.5), [([4, 1], [4, 1]), ([4, 0], [4, 0])])
    (row,) = table([choice], store.results())
    assert row.known is None
    for spec in plan.finals("erm", choice.hparams)[0]:  # as if the method used the domain
        path = store.path / "runs" / spec.key / "result.json"
        result = read_json(path, RunResult)
        told = msgspec.structs.replace(result.test, hits=result.test.totals)
        write_json(path, msgspec.structs.replace(result, known=KnownDomain(validation=told, test=told)))
    (known,) = table([choice], Store(store.path).results())
    assert known.known == (pytest.approx(1.0), None) and known.accuracy == row.accuracy
    assert row.seeds == 2  # (4 of 8, 0 of 1), then all
    assert row.accuracy["pair_average"] == (pytest.approx(mean([0.25, 1.0])), pytest.approx(stdev([0.25, 1.0])))
    fail(store, trials[2][1])
    (choice,) = choices(store, store.results())
    assert set(choice.failed) == {2} and choice.missing == 0
