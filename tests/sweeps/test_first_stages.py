"""Methods that differ in their second stage only train the first one once, and end as if each had trained it."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from crosstail.sweeps import plan
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Stopped, execute
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve

STAGES = [":retrain", "", ":ncm"]


def content(folder):
    """All that a run leaves, except how long it took."""
    here = RunFolder(folder)
    result, *records = (msgspec.structs.replace(value, seconds=0.0) for value in (here.result(), *here.records()))
    weights = {name: value.numpy().tobytes() for name, value in here.load("model.pt").items()}
    return sorted(path.name for path in folder.iterdir()), result, records, weights


@pytest.fixture
def counted(own, tmp_path):
    """An algorithm that writes down each of its steps, and how many there were."""
    file = tmp_path / "steps"
    file.touch()
    return own("counted", f"note({str(file)!r})"), lambda: len(file.read_text().splitlines())


@pytest.mark.parametrize("launcher", ["inline", "local"])
def test_first_stages_are_trained_once(shared, run, counted, tmp_path, launcher) -> None:
    name, steps = counted
    together = Store(tmp_path / "together")
    workers = {"workers": 2} if launcher == "local" else {}
    outcomes = run(
        plan.make(shared, [name + stage for stage in STAGES], trials=1, seeds=2), together, launcher, **workers
    )
    assert steps() == 2 * shared.steps and len(outcomes) == 6
    for stage in STAGES:
        apart = Store(tmp_path / f"apart{stage}")
        for key in run(plan.make(shared, [name + stage], trials=1, seeds=2), apart):
            assert content(together.path / "runs" / key) == content(apart.path / "runs" / key)
    assert steps() == 8 * shared.steps


def test_a_first_stage_that_nobody_asked_for_is_trained_and_not_told(shared, run, counted, tmp_path) -> None:
    name, steps = counted
    store = Store(tmp_path / "sweep")
    outcomes = run(plan.make(shared, [f"{name}:retrain", f"{name}:ncm"], trials=1, seeds=1), store)
    assert steps() == shared.steps and set(outcomes.values()) == {"done"} and len(outcomes) == 2
    first = set(store.results()) - set(outcomes)
    assert len(first) == 1
    run(plan.make(shared, [name, f"{name}:tau_norm"], trials=1, seeds=1), store)  # both find it there
    assert steps() == shared.steps


def test_a_method_alone_trains_its_own(shared, run, counted, tmp_path) -> None:
    name, steps = counted
    store = Store(tmp_path / "sweep")
    outcomes = run(plan.make(shared, [f"{name}:retrain"], trials=1, seeds=2), store)
    assert steps() == 2 * shared.steps and set(store.results()) == set(outcomes)


def test_a_failed_first_stage_fails_them_all(shared, run, own, tmp_path) -> None:
    name = own("broken", "raise RuntimeError('no luck')")
    outcomes = run(plan.make(shared, [f"{name}:retrain", f"{name}:ncm"], trials=1, seeds=1), Store(tmp_path / "sweep"))
    assert set(outcomes.values()) == {"failed"} and len(outcomes) == 2


@pytest.mark.parametrize("steps", [1, 5, 11])
def test_a_second_stage_that_was_stopped_goes_on(shared, tmp_path, steps) -> None:
    store = Store(tmp_path / "sweep")
    spec = resolve(replace(shared, algorithm="boda", second_stage="retrain", hparams={}))
    whole = Store(tmp_path / "whole")
    execute(whole, Job(spec))
    execute(store, Job(spec.first_stage))
    done = iter(range(steps))
    job = Job(spec, after=spec.first_stage.key)
    with pytest.raises(Stopped):
        execute(store, job, lambda: next(done, None) is None)
    (folder,) = store.unfinished()[spec.key]
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    assert {line["stage"] for line in lines} == {1, 2}
    assert execute(store, job).how == "done"
    assert content(store.path / "runs" / spec.key) == content(whole.path / "runs" / spec.key)


def test_the_run_of_a_first_stage_has_no_second_learning_rate(shared) -> None:
    spec = resolve(replace(shared, second_stage="retrain", second_lr=0.1))
    first = spec.first_stage
    assert first == resolve(replace(shared)) and first.first_stage == first and Path(first.dataset).exists()
