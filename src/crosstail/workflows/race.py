"""Find out which method to use for data: many methods on the same frozen features with the same small budget."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from crosstail import algorithms, data
from crosstail.data import protocols
from crosstail.data.splits.gaps import leaking_column
from crosstail.progress import Progress, silent
from crosstail.reports.compare.race_page import write_page
from crosstail.reports.run.command import options
from crosstail.storage import write_json
from crosstail.sweeps.drive import sweep
from crosstail.sweeps.halving import rounds
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.race import enter, outcome
from crosstail.sweeps.race_result import RaceResult
from crosstail.sweeps.recommendation import start_with
from crosstail.sweeps.store import Failure, Store
from crosstail.training.existing import point_to
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec
from crosstail.workflows._output import refuse_foreign, unused_path

STEPS, EVALUATIONS = 300, 3
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
        return self.out / "best" if self.result.leaderboard and self.result.folds is None else None


def race(
    spec: RunSpec,
    out: Path,
    *,
    algorithm: Sequence[str] = (),
    trials: int = 5,
    seeds: int = 3,
    finalists: int = 12,
    workers: int | None = None,
    progress: Progress = silent,
) -> Raced:
    """Try all algorithms on frozen features of your data, with the same small budget, and recommend one.

    Args:
        spec: The data, the backbone and the budget of every run (300 steps unless it says otherwise); the race sets its
            method, hyperparameters and seed.
        out: Folder of the race and its report.html; running the same again resumes it.
        algorithm: Methods such as boda or boda:retrain, or files; default: every algorithm.
        trials: Trials per method; the first has the default hyperparameters.
        seeds: Seeds of the trial that is best on validation.
        finalists: Number of methods, besides erm and the default, that get all trials and seeds; before that, the worse
            half on validation is dropped after each trial.
        workers: Runs at a time; default: one per GPU, or one per core.
        progress: Called as the race advances.
    """
    if spec.protocol != "mdlt" or spec.part:
        raise ValueError(f"a race is on all domains and folds, not on {spec.part or 'unseen domains'}")
    freeze = data.kind_in(spec.dataset, spec.columns).picture
    budget: dict[str, Any] = {"steps": spec.steps or STEPS, "evaluations": EVALUATIONS, "augment": False}
    shared = replace(spec, algorithm="erm", second_stage=None, hparams={}, seed=0, freeze=freeze, **budget)
    methods = algorithm or [entry.name for entry in algorithms.catalogue()]
    refuse_foreign(out, own=(out / "race.json").exists() and not (out / "spec.json").exists())
    store, resolved = Store(out), resolve(shared)
    source = data.load_source(resolved, progress)
    parts = protocols.parts(resolved, source)
    samples = load_inputs(parts[0], source).embedded(progress)
    plan, left_out = enter(shared, methods, samples, trials=trials, seeds=seeds)
    plans: list[Plan] = []
    failures: dict[str, Failure] = {}
    with _launcher.launcher("local", store, _launcher.Resources(workers)) as crew:
        for part in rounds(plan, store, finalists):
            plans.append(part)
            total = len(part.methods) * part.runs_per_method
            for done, (_, ended) in enumerate(sweep(part, store, crew), 1):
                progress(f"round {len(plans)}, {len(part.methods)} methods", done, total)
                if ended.how == "failed":
                    failures[ended.key] = Failure("error", ended.error, 1)
    splits = [protocols.split(source, part) for part in parts]
    found = outcome(plans, left_out, store, splits, {**failures, **store.failures()})  # a full disk records none
    board = found.leaderboard
    if board:
        grouped = shared.with_group(leaking_column(samples))
        found = msgspec.structs.replace(found, next=next_command(grouped, start_with(board).method, out))
    write_json(out / "race.json", found)
    write_json(out / "selected.json", {row.method: row.hparams for row in board})
    if board:
        write_page(found, out)
        if shared.folds is None:
            (run, *_), *_ = start_with(board).runs.values()
            point_to(out / "runs" / run, out / "best")
    return Raced(out, found)


def next_command(shared: RunSpec, method: str, out: Path) -> str:
    """The command that trains a method with the hyperparameters that the race chose."""
    shared = replace(shared, freeze=shared.freeze or None)  # vectors are what they are
    refit = ["--refit"] if shared.folds else []
    inherited = {field.name for field in fields(shared)} - NOT_INHERITED
    words = *options(shared, only=inherited), "--algorithm", method, "--hparams", str(out / "selected.json"), *refit
    return shlex.join(["crosstail", "fit", shared.dataset, *words, "--out", str(unused_path("run"))])
