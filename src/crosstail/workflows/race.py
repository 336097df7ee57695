"""Find out which method to use for data: many methods on the same frozen features with the same small budget."""

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from crosstail import algorithms, data
from crosstail.data import DomainDataset, protocols
from crosstail.data.splits.gaps import leaking_column
from crosstail.progress import Progress, silent
from crosstail.reports.compare.race_news import after_quick, beginning
from crosstail.reports.compare.race_page import write_page
from crosstail.reports.run.command import inputs_of, options
from crosstail.reports.run.page import write_page as write_run_page
from crosstail.storage import write_json
from crosstail.sweeps.drive import sweep
from crosstail.sweeps.estimate import run_seconds
from crosstail.sweeps.forecast import Forecast
from crosstail.sweeps.halving import UNTRAINED, fitted_on_features, rounds, scores, untrained
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.outlook import Outlook
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.race import enter, outcome
from crosstail.sweeps.race_result import RaceResult, Standing
from crosstail.sweeps.recommendation import winner
from crosstail.sweeps.store import Failure, Store
from crosstail.training.existing import existing_run, point_to
from crosstail.training.resolve import resolve
from crosstail.training.run import Run
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec
from crosstail.workflows._output import refuse_foreign, unused_path

STEPS, EVALUATIONS = 300, 3
BEST = "best"
NOT_INHERITED = {"algorithm", "augment", "steps", "evaluations"}
"""Fields that the run after a race has of its own: the winning method, default augmentation and a full budget."""


@dataclass(frozen=True)
class Raced:
    """A race that has ended."""

    out: Path
    result: RaceResult
    """The leaderboard, the recommendation, and what became of the other methods: the content of race.json."""

    @property
    def best(self) -> Path | None:
        """The folder of the recommended run; None if no run has a result, and with folds, where it is several."""
        return self.out / BEST if self.result.leaderboard and self.result.folds is None else None


def race(
    spec: RunSpec,
    out: Path,
    *,
    algorithm: Sequence[str] = (),
    trials: int = 5,
    seeds: int = 3,
    finalists: int = 12,
    workers: int | None = None,
    quick: bool = False,
    progress: Progress = silent,
    watch: Callable[[Outlook], None] = lambda outlook: None,
) -> Raced:
    """Try all algorithms on frozen features of your data, with the same small budget, and recommend one.

    Methods that fit a classifier without training come first and take seconds.

    Args:
        spec: The data, the backbone and the budget of every run (300 steps unless it says otherwise); the race sets its
            method, hyperparameters and seed.
        out: Folder of the race and its report.html; running the same again resumes it.
        algorithm: Methods such as boda or boda:retrain, or files; default: every algorithm, and every second stage that
            is fitted to the features as they are.
        trials: Trials per method; the first has the default hyperparameters.
        seeds: Seeds of the trial that is best on validation.
        finalists: Number of methods, besides erm and the default, that get all trials and seeds; before that, the worse
            half on validation is dropped after each trial.
        workers: Runs at a time; default: one per GPU, or one per core.
        quick: End after the methods that train nothing; the same without it goes on from there.
        progress: Called while the data are loaded and embedded.
        watch: Told before the first run how long all will take, and after each one how long it still takes.
    """
    if spec.protocol != "mdlt" or spec.part:
        raise ValueError(f"a race is on all domains and folds, not on {spec.part or 'unseen domains'}")
    tune = "none" if data.kind_in(spec.dataset, spec.columns).picture else "all"
    budget: dict[str, Any] = {"steps": spec.steps or STEPS, "evaluations": EVALUATIONS, "augment": False}
    shared = replace(spec, algorithm="erm", second_stage=None, hparams={}, seed=0, tune=tune, **budget)
    methods = algorithm or [*fitted_on_features(), *(one.name for one in algorithms.catalogue())]
    refuse_foreign(out, own=(out / "race.json").exists() and not (out / "spec.json").exists())
    store, resolved, began = Store(out), resolve(shared), time.perf_counter()
    source = data.load_source(resolved, progress)
    startup = time.perf_counter() - began  # of each worker, which reads the data too
    parts = protocols.parts(resolved, source)
    inputs = load_inputs(parts[0], source)
    samples = inputs.embedded(progress)
    plan, left_out = enter(shared, methods, samples, trials=trials, seeds=seeds)
    if quick and not any(map(untrained, plan.methods)):
        raise ValueError("--quick ends after the methods that train nothing, and none is named: add frozen:blend")
    progress("measuring a few steps of each method", 0, 1)
    seconds = run_seconds(plan, inputs)
    splits = [protocols.split(source, part) for part in parts]
    plans: list[Plan] = []
    failures: dict[str, Failure] = {}
    with _launcher.launcher("local", store, _launcher.Resources(workers)) as crew:
        forecast = Forecast(plan, seconds, crew.workers, store, startup)
        for at in rounds(plan, partial(scores, store), finalists):
            plans.append(at.plan)
            forecast.begin(at, last=quick)
            watch(forecast.outlook(beginning(forecast, plan) if len(plans) == 1 else ""))
            for job, ended in sweep(at.plan, store, crew, keep=at.name == UNTRAINED or not at.later):
                forecast.end(job, ended)
                told = forecast.outlook()
                told.write(out)
                watch(told)
                if ended.how == "failed":
                    failures[ended.key] = Failure("error", ended.error, 1)
            if at.name == UNTRAINED and len(plan.methods) > len(at.plan.methods):
                quickly = outcome(plans, left_out, store, splits, {**failures, **store.failures()})
                watch(forecast.outlook(after_quick(quickly, forecast, plan)))
            if quick:
                break
    Outlook.end(out)
    found = outcome(plans, left_out, store, splits, {**failures, **store.failures()})  # a full disk records none
    board = found.leaderboard
    if board:
        text, command = next_step(shared, winner(board), out, samples, leaking_column(samples))
        found = msgspec.structs.replace(found, next_text=text, next=command)
    write_json(out / "race.json", found)
    write_json(out / "selected.json", {row.method: row.hparams for row in board})
    if board:
        progress("writing the pages", 0, 1)
        write_page(found, out)
        if shared.folds is None:
            (run, *_), *_ = winner(board).runs.values()
            point_to(out / "runs" / run, out / BEST)
            write_run_page(Run(existing_run(out / BEST), inputs=inputs))
    return Raced(out, found)


def next_step(shared: RunSpec, use: Standing, out: Path, data: DomainDataset, leaks: str | None) -> tuple[str, str]:
    """What to do with the recommended method, and the command for it."""
    trained, best, files = not untrained(use.method), out / BEST, inputs_of(shared, data)
    if files and not (trained or leaks or shared.folds):
        text = f"{best} is the model to use: {use.method} has nothing to train for longer. Name your new files instead."
        return text, shlex.join(["crosstail", "predict", str(best), *files, "--out", str(unused_path("classes.csv"))])
    text = f"Train {use.method} for longer, with the chosen hyperparameters."
    if shared.folds:
        text = f"Train {use.method} on every fold, and the final model on every sample."
    elif leaks:
        text = f"Train {use.method} again, with the samples of each {leaks} kept together."
    elif not trained:
        text = f"Train {use.method} again, on its own."
    return text, next_command(shared.with_group(leaks), use.method, out)


def next_command(shared: RunSpec, method: str, out: Path) -> str:
    """The command that trains a method with the hyperparameters that the race chose, if it has any."""
    shared = replace(shared, tune="none" if shared.tune == "none" else None)  # vectors are what they are
    words = options(shared, only={field.name for field in fields(shared)} - NOT_INHERITED)
    words += ["--algorithm", method, *["--hparams", str(out / "selected.json")] * (not untrained(method))]
    words += ["--refit"] * bool(shared.folds)
    return shlex.join(["crosstail", "fit", shared.dataset, *words, "--out", str(unused_path("run"))])
