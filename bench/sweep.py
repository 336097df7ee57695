"""Many short runs on vectors: two workers compared with one, overhead of trials and store, reading 10,000 results."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median

import msgspec

from bench._first_step import seconds_to_first_step
from bench._rows import Row
from crosstail.storage import write_json
from crosstail.sweeps.drive import complete
from crosstail.sweeps.launchers._launcher import Resources, launcher
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve

PARTS = 3
METHODS = ("erm", "coral", "boda", "boda:retrain", "da")


def run() -> list[Row]:
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_separable(folder / "vectors.npz", [[100, 30, 10, 5], [5, 10, 30, 100], [20, 20, 20, 20]], num_features=128)
        shared = resolve(
            RunSpec(dataset=str(folder / "vectors.npz"), algorithm="erm", backbone="mlp", steps=100 if quick else 400)
        )
        return [
            _workers(folder, shared, "local", 1.8, trials=12 if quick else 40),
            _workers(folder, shared, "ray", 1.6, trials=12 if quick else 40),
            *_one_trial(folder, shared),
            *_reading(folder, shared, count=1_000 if quick else 10_000),
        ]


def _workers(folder: Path, shared: RunSpec, name: str, limit: float, trials: int) -> Row:
    """Speed-up by a second worker, measured in alternating parts. Starting the workers is not timed."""
    plan = make(shared, ["erm"], trials=trials)
    jobs = [Job(spec) for hparams in plan.drawn["erm"] for spec in plan.runs("erm", hparams)]
    warm_up = [Job(replace(shared, steps=1, seed=seed)) for seed in range(4)]
    seconds = {1: 0.0, 2: 0.0}
    for part, workers in product(range(PARTS), seconds):
        store = Store(folder / f"{name} {part} {workers}")
        with launcher(name, store, Resources(workers)) as crew:
            list(complete(store, crew, warm_up))
            time.sleep(5)  # until all workers have started
            start = time.perf_counter()
            list(complete(store, crew, jobs[part::PARTS]))
            seconds[workers] += time.perf_counter() - start
    label = f"{trials} trials, {name}, 2 workers"
    return Row(label, seconds[2], "1 worker", seconds[1] / seconds[2], limit, "at least")


def _one_trial(folder: Path, shared: RunSpec) -> list[Row]:
    store = Store(folder / "one")
    starts, keeping = [], []
    for seed in range(20):
        spec = replace(shared, steps=2, seed=seed)
        starts.append(seconds_to_first_step(store, spec))
        start = time.perf_counter()
        lease = store.claim(replace(spec, data_seed=1))
        assert lease is not None
        store.publish(lease, f"kept {seed}")
        keeping.append(time.perf_counter() - start)
    store_costs = median(keeping)
    return [
        Row("trial, until its first step is done", median(starts), "", None, 0.05),
        Row("store, per run", store_costs, "a run of 10 s", store_costs / 10, 0.01),
    ]


def _reading(folder: Path, shared: RunSpec, count: int) -> list[Row]:
    """Time whole commands, including the start of Python."""
    result = train_run(replace(shared, steps=1), folder / "result").result
    place = folder / "many"
    plan = make(shared, METHODS, trials=count // len(METHODS), seeds=1)
    Store(place).add(plan)
    for method in plan.methods:
        for number, hparams in enumerate(plan.drawn[method]):
            (spec,) = plan.runs(method, hparams)
            (place / "runs" / spec.key).mkdir(parents=True, exist_ok=True)  # two trials may draw the same
            validation = msgspec.structs.replace(result.validation, pair_average=number / count)
            written = msgspec.structs.replace(result, spec=spec, validation=validation)
            write_json(place / "runs" / spec.key / "result.json", written)
    index, rows = place / "index.jsonl", []
    for verb in ("status", "select"):
        for what, prepare in (("no index yet", lambda: index.unlink(missing_ok=True)), ("index", lambda: None)):
            seconds = median(_command(verb, place, prepare) for _ in range(3))
            rows.append(Row(f"{verb} of {count:,} runs, {what}", seconds, "", None, 3.0))
    return rows


def _command(verb: str, place: Path, prepare: Callable[[], None]) -> float:
    prepare()
    program = "import sys; from crosstail.cli import main; sys.argv[0] = 'crosstail'; main()"
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, verb, str(place), "--json"], capture_output=True, check=True)
    seconds = time.perf_counter() - start
    assert len(json.loads(done.stdout)) == len(METHODS)
    return seconds
