"""How long a race takes: what is said before its first run against a simulation with known times."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from crosstail.sweeps import forecast as forecasting
from crosstail.sweeps.forecast import Forecast
from crosstail.sweeps.halving import fitted_on_features, rounds
from crosstail.sweeps.plan import Plan, make
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome
from crosstail.testing import save_separable
from crosstail.training.spec import RunSpec

TRAINED = [
    "erm",
    "focal",
    "mixup",
    "ldam",
    "resample",
    "sam",
    "boda",
    "coral",
    "mmd",
    "irm",
    "vrex",
    "sd",
    "rsc",
    "gcl",
]
METHODS = [*fitted_on_features(), *TRAINED]


@pytest.fixture
def plan(tmp_path) -> Plan:
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    shared = RunSpec(dataset=str(tmp_path / "v.npz"), algorithm="erm", steps=6, batch_size=8)
    return make(shared, METHODS, trials=5, seeds=3)


def simulated(plan: Plan, store: Store, real, estimated, rank, monkeypatch, workers=2, finalists=3):
    """The time that a race takes, by how long it says before its first run, and (said, true) at each later one."""
    now, said = [0.0], []
    monkeypatch.setattr(forecasting.time, "perf_counter", lambda: now[0])
    forecast = Forecast(plan, estimated, workers, store)
    done = set()
    for at in rounds(plan, lambda part: {method: -rank[method] for method in part.methods}, finalists):
        forecast.begin(at)
        said.append((now[0], forecast.outlook().left))
        jobs = []
        for method in at.plan.methods:
            trials = [spec for hparams in at.plan.drawn[method] for spec in at.plan.runs(method, hparams)]
            jobs += [*trials, *(spec for own in at.plan.finals(method, at.plan.drawn[method][0]) for spec in own)]
        free = [now[0]] * workers
        ends = []
        for spec in {spec.key: spec for spec in jobs}.values():
            if spec.key in done:
                forecast.end(Job(spec), Outcome(spec.key, "kept"))
                continue
            begun = heapq.heappop(free)
            heapq.heappush(free, begun + real[spec.method])
            ends.append((begun + real[spec.method], spec.key, spec))
        for end, key, spec in sorted(ends, key=lambda one: one[:2]):
            now[0] = end
            forecast.end(Job(spec), Outcome(key, "done"))
            said.append((now[0], forecast.outlook().left))
            done.add(key)
    return said, now[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slower", [1.0, 1.4])
def test_what_is_said_before_the_first_run_is_within_half_again(plan, tmp_path, monkeypatch, seed, slower) -> None:
    rng = np.random.default_rng(seed)
    estimated = {method: float(rng.choice([1.0, 1.3, 2.0, 5.0])) for method in plan.methods}
    real = {method: slower * seconds for method, seconds in estimated.items()}  # with all workers at work
    rank = dict(zip(plan.methods, rng.permutation(len(plan.methods)), strict=True))
    said, whole = simulated(plan, Store(tmp_path / "race"), real, estimated, rank, monkeypatch)
    assert whole / 1.5 < said[0][1] < 1.5 * whole
    later = [(left, whole - now) for now, left in said if 0.1 * whole < whole - now < 0.8 * whole]
    assert later and all(real_left / 1.5 < left < 1.5 * real_left for left, real_left in later)


def test_runs_that_are_finished_already_take_no_time(plan, tmp_path) -> None:
    seconds = dict.fromkeys(plan.methods, 1.0)
    store = Store(tmp_path / "race")
    first = next(rounds(plan, lambda part: {}, 3))
    before = Forecast(plan, seconds, 1, store)
    before.begin(first)
    for method in first.plan.methods:
        for own in plan.finals(method, plan.drawn[method][0]):
            (store.path / "runs" / own[0].key).mkdir(parents=True)
    after = Forecast(plan, seconds, 1, store)
    after.begin(first)
    assert before.outlook().left - after.outlook().left == pytest.approx(3 * len(first.plan.methods), abs=0.1)
    assert after.outlook().done == after.outlook().runs


def test_trials_that_are_the_same_run_are_counted_once(plan, tmp_path) -> None:
    plan = replace(plan, methods=("frozen:ncm", "erm"))
    forecast = Forecast(plan, {"frozen:ncm": 10.0, "erm": 1.0}, 1, Store(tmp_path / "race"))
    first = next(rounds(plan, lambda part: {}, 3))
    forecast.begin(first)
    assert forecast.outlook().left == pytest.approx(3 * 10 + (5 + 2), abs=0.1)
    forecast.begin(first, last=True)
    assert forecast.outlook().left == pytest.approx(30, abs=0.1) and forecast.rest == pytest.approx(7, abs=0.1)


def test_the_time_in_which_workers_start_is_no_slower_pace(plan, tmp_path, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(forecasting.time, "perf_counter", lambda: now[0])
    seconds = dict.fromkeys(plan.methods, 1.0)
    forecast = Forecast(plan, seconds, 1, Store(tmp_path / "race"), startup=30.0)
    forecast.begin(next(rounds(plan, lambda part: {}, 3)))
    whole = forecast.outlook().left
    for number, method in enumerate(forecast.round.plan.methods[:5], 1):
        now[0] = 30.0 + number
        spec = plan.runs(method, plan.drawn[method][0])[0]
        forecast.end(Job(spec), Outcome(spec.key, "done"))
        assert forecast.outlook().left == pytest.approx(whole - now[0])
