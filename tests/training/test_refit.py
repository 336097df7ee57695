"""The final model: where its training stops, what it is trained on, and which accuracy it is given."""

from dataclasses import replace

import numpy as np
import pytest
from tests.interruption import stop

from crosstail.data import load_source, protocols
from crosstail.reports.run.suspects import suspect_table
from crosstail.testing import save_separable
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.refit import refit_spec, with_estimate
from crosstail.training.resolve import resolve
from crosstail.training.run import Run
from crosstail.training.run_data import load_inputs


@pytest.fixture
def spec(tiny):
    return resolve(tiny(second_stage="retrain"))


def every_run(spec, out):
    return [train_run(one, out / f"{i}") for i, one in enumerate(protocols.parts(spec, load_source(spec)))]


@pytest.mark.parametrize("changes", [{}, {"folds": 4}, {"protocol": "dg"}])
def test_the_final_model_is_trained_on_every_sample_for_the_median_of_the_selected_steps(spec, tmp_path, changes):
    runs = every_run(replace(spec, **changes), tmp_path / "runs")
    results = [run.result for run in runs]
    assert len(results) == {"folds": 4, "protocol": 2}.get(next(iter(changes), ""), 1)
    found = refit_spec(results)
    assert found.part and found.unseen is None and found.fold is None
    for stage, step in enumerate(found.stop_at):
        chosen = sorted(result.selected_steps[stage] for result in results)
        assert step == chosen[len(chosen) // 2]  # the upper one of two in the middle
    run = train_run(found, tmp_path / "final")
    assert run.result.selected_steps == list(found.stop_at)
    assert np.sum(run.result.counts) == len(load_source(found)) and not np.any(run.result.test.totals)
    assert run.result.estimate is None
    done = with_estimate(run, runs)
    assert RunFolder(tmp_path / "final").result() == done.result
    for name in ("hits", "totals"):
        pooled = np.sum([getattr(result.test, name) for result in results], axis=0)
        assert (np.array(getattr(done.result.estimate, name)) == pooled).all()
    assert bool(done.result.estimate.shots) == ("protocol" not in changes)


def test_stopping_changes_nothing_before(spec, tmp_path):
    """The warm-up is a share of the steps, which stay as they are."""
    long, short = (replace(spec, second_stage=None, stop_at=(step,)) for step in (12, 7))
    runs = [train_run(one, tmp_path / str(one.stop_at[0])) for one in (long, short)]
    records = [{record.step: record.losses for record in run.folder.records()} for run in runs]
    assert list(records[0]) == [0, 3, 6, 9, 12] and list(records[1]) == [0, 3, 6, 7]
    assert all(records[0][step] == records[1][step] for step in (0, 3, 6))


def test_a_stopped_refit_resumes_to_the_same_weights(spec, tmp_path):
    spec = replace(spec, stop_at=(6, 9))
    whole = train_run(spec, tmp_path / "whole")
    for point in (("stage 1", 5), ("stage 2", 7)):
        stop(spec, tmp_path / "stopped", *point)
    again = train_run(spec, tmp_path / "stopped")
    states = [run.folder.weights() for run in (whole, again)]
    assert all((states[0][name] == states[1][name]).all() for name in states[0])


def test_folds_are_runs_of_their_own_on_the_same_samples(spec):
    source = load_source(spec)
    expanded = protocols.parts(replace(spec, folds=3), source)
    assert [one.fold for one in expanded] == [1, 2, 3] and len({one.key for one in expanded}) == 3
    tested = [load_inputs(one, source).samples.rows("test") for one in expanded]
    assert sorted(np.concatenate(tested)) == list(range(len(source)))
    assert protocols.parts(expanded[1], source) == [expanded[1]]


@pytest.mark.parametrize("folds", [None, 2])
def test_label_profiles_drop_other_samples_from_each_run_and_rows_are_those_of_the_final_data(spec, tmp_path, folds):
    save_separable(tmp_path / "easy.npz", [[12, 9, 8], [8, 9, 12]])
    runs = every_run(replace(spec, labels=("forward:4", "backward:4"), folds=folds), tmp_path / "runs")
    final = train_run(refit_spec([run.result for run in runs]), tmp_path / "final")
    assert len(final.dataset) < len(load_source(spec))
    with_estimate(final, runs)
    stored, data = Run(tmp_path / "final").held_out, final.dataset
    assert len(stored.test) == len(runs[0].held_out.test) and len(np.unique(stored.every.row)) == len(stored)
    there = stored.every.keep(stored.every.row < len(data))
    assert 0 < len(there) < len(stored)
    assert (data.y[there.row] == there.y).all() and (data.domain[there.row] == there.domain).all()
    vectors = {run.dataset.x[row].tobytes() for run in runs for row in run.held_out.every.row}
    assert {data.x[row].tobytes() for row in there.row} <= vectors
    assert (suspect_table(Run(tmp_path / "final"))["row"] < len(data)).all()
