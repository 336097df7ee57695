"""What is run: settings, methods, label configurations, and the order, most important first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from studies.paper_claims.records import Records

from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

DIVERGENT, UNIFORM = "forward–backward", "uniform–uniform"
CONFIGURATIONS = {
    DIVERGENT: ("forward:100", "backward:100"),
    UNIFORM: ("uniform", "uniform"),
    "forward–forward": ("forward:100", "forward:100"),
    "backward–forward": ("backward:100", "forward:100"),
    "backward–backward": ("backward:100", "backward:100"),
}
RATES = (0.001, 0.00316228, 0.000316228)
METHODS = ("erm", "coral", "boda", "boda+coral", "bsoftmax", "bsoftmax+coral")
METHODS += ("boda@reference", "da", "dann", "boda+bsoftmax+coral")
CLAIMED = ("erm", "boda")  # what the paper compares in all label configurations
EVERYWHERE = (*CLAIMED, "boda+coral", "bsoftmax", "bsoftmax+coral")
DOMAINS = ("amazon", "caltech10", "dslr", "webcam")
PHOTO_METHODS = ("erm", "coral", "boda", "boda+coral")
NU, SEEDS = (0.0, 0.5), 3  # of the ablation of ν; ν = 1 is the default
STAGES = (1, 2)


@dataclass(frozen=True)
class Cell:
    """An algorithm on one label configuration, or with one unseen domain; some hyperparameters may be changed."""

    algorithm: str
    where: str = DIVERGENT
    changed: tuple[tuple[str, float], ...] = ()


NO_WARMUP = tuple(Cell(name, changed=(("warmup", 0.0),)) for name in ("boda", "boda+coral"))
RESCALED = Cell("boda@rescaled")


@dataclass(frozen=True)
class Run:
    """One run, identified by what the study says of it; other hyperparameters have their defaults."""

    cell: Cell
    lr: float
    seed: int = 0
    short: bool = False  # one of the ERM models whose α, β, γ are compared: few steps, one stage

    @property
    def key(self) -> str:
        """What identifies the run within its setting.

        >>> Run(NO_WARMUP[0], 0.001, seed=2).key
        'forward–backward boda lr=0.001 warmup=0 seed=2'
        """
        named = {"lr": self.lr, **dict(self.cell.changed), "seed": self.seed}
        words = [self.cell.where, self.cell.algorithm, *(f"{name}={value:g}" for name, value in named.items())]
        return " ".join(words + ["short"] * self.short)


@dataclass(frozen=True)
class Setting:
    """Data, network and budget: everything that the runs of one comparison share."""

    name: str
    title: str
    shared: RunSpec
    models: int = 20  # short ERM models per configuration
    model_steps: int = 0
    seeds: int = 5
    rates: tuple[float, ...] = RATES
    halve: bool = False  # images to half their width and height
    every: int = 1  # use every n-th sample

    @property
    def photos(self) -> bool:
        """Whether domains are left out in turn."""
        return self.shared.protocol == "dg"

    def spec(self, run: Run, data: Path) -> RunSpec:
        """The resolved spec of a run. A seed also redraws the split or the samples that the tails keep."""
        where = run.cell.where
        hparams = {"lr": run.lr, "weight_decay": 0.0, **dict(run.cell.changed)}
        own: dict[str, Any] = {"unseen": where} if self.photos else {"labels": CONFIGURATIONS[where]}
        if run.short:
            own |= {"steps": self.model_steps, "evaluations": 1}
        own |= {"second_stage": None if run.short else "retrain", "seed": run.seed, "data_seed": run.seed}
        return resolve(replace(self.shared, dataset=str(data), algorithm=run.cell.algorithm, hparams=hparams, **own))


CNN: dict[str, Any] = {"backbone": "small_cnn", "width": 16, "tune": "all"}
FROZEN: dict[str, Any] = {"backbone": "efficientnet_lite0", "tune": "none"}
EQUAL: dict[str, Any] = {"augment": False, "batch_size": 24}
SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "cnn",
            "small CNN from pixels",
            RunSpec(dataset="digits-mlt-16.npz", steps=9000, evaluations=6, **CNN, **EQUAL),
            model_steps=500,
            halve=True,
        ),
        Setting(
            "frozen",
            "MLP on frozen features",
            RunSpec(dataset="digits-mlt.npz", steps=1000, evaluations=10, **FROZEN, **EQUAL),
            model_steps=200,
        ),
        Setting(
            "photos",
            "Office-Caltech10, unseen domain",
            RunSpec(dataset="office-caltech10", protocol="dg", steps=300, evaluations=10, **FROZEN, **EQUAL),
        ),
    )
}


def brief(setting: Setting) -> Setting:
    """A small version on a tenth of the digits, which tests the code but does not compare the methods."""
    dataset = setting.shared.dataset.replace(".npz", "-tenth.npz")
    shared = replace(setting.shared, dataset=dataset, steps=20, evaluations=2)
    every = 1 if setting.photos else 10
    return replace(setting, shared=shared, models=4, model_steps=20, seeds=2, rates=RATES[:1], every=every)


QUICK = {name: brief(setting) for name, setting in SETTINGS.items()}


@dataclass(frozen=True)
class Study:
    """A setting and the records of its runs: which learning rate is chosen, and which runs a result needs."""

    setting: Setting
    records: Records

    def trials(self, cell: Cell, seed: int = 0) -> list[Run]:
        """The runs that a cell's learning rate is chosen from: its own on photos, else those on divergent labels."""
        if not self.setting.photos:
            cell, seed = Cell(cell.algorithm), 0
        return [Run(cell, rate, seed) for rate in self.setting.rates]

    def chosen(self, cell: Cell, stage: int, seed: int = 0) -> float | None:
        """The learning rate that is best on validation at the end of a stage; None until all are known."""
        trials = self.trials(cell, seed)
        if any(run.key not in self.records for run in trials):
            return None
        return max(trials, key=lambda run: self.records.validation(run.key, stage)).lr

    def finals(self, cell: Cell, stage: int, seeds: int | None = None) -> list[Run | None]:
        """The runs that give a cell's results at the end of a stage, by seed; None if its rate is not chosen yet."""
        number = min(seeds or self.setting.seeds, self.setting.seeds)
        rates = [self.chosen(cell, stage, seed) for seed in range(number)]
        return [None if rate is None else Run(cell, rate, seed) for seed, rate in enumerate(rates)]

    def models(self, where: str) -> list[Run]:
        """Short ERM runs that differ in their learning rate, evenly spaced over DomainBed's range on a log scale."""
        rates = np.logspace(-4.5, -2.5, self.setting.models)
        return [Run(Cell("erm", where), float(f"{rate:.6g}"), short=True) for rate in rates]

    def wanted(self) -> Iterator[Run | None]:
        """All runs, most important first; None for one whose learning rate is not chosen yet."""
        if self.setting.photos:
            for seed in range(self.setting.seeds):
                for where in DOMAINS:
                    for name in PHOTO_METHODS:
                        yield from self.trials(Cell(name, where), seed)
            return
        methods = list(map(Cell, METHODS))
        for trials in zip(*map(self.trials, methods), strict=True):  # one rate of all methods after the other
            yield from trials
        yield from self._by_seed([*methods, *NO_WARMUP])
        for nu in NU:
            for stage in STAGES:
                yield from self.finals(Cell("boda", changed=(("nu", nu),)), stage, SEEDS)
        yield from self.trials(RESCALED)
        yield from self._by_seed([RESCALED])
        for where in CONFIGURATIONS:
            yield from self.models(where)
        others = [where for where in CONFIGURATIONS if where != DIVERGENT]
        for names in (CLAIMED, EVERYWHERE):
            yield from self._by_seed([Cell(name, where) for where in others for name in names])

    def _by_seed(self, cells: list[Cell]) -> Iterator[Run | None]:
        for seed in range(self.setting.seeds):
            for cell in cells:
                for stage in STAGES:
                    yield self.finals(cell, stage)[seed]

    def lacking(self, cell: Cell, stage: int, seeds: int | None = None) -> set[str]:
        """Keys of the runs that a result still needs, with a placeholder for those that depend on other runs."""
        finals = self.finals(cell, stage, seeds)
        trials = {run for seed in range(len(finals)) for run in self.trials(cell, seed)}
        later = [Run(cell, self.setting.rates[0], seed) for seed, run in enumerate(finals) if run is None]
        known = {run.key for run in trials.union(filter(None, finals))}
        return {key for key in known if key not in self.records} | {f"{run}" for run in later if run not in trials}

    def missing(self) -> list[Run]:
        """The runs that are known to be needed and not in the records."""
        return [run for run in dict.fromkeys(self.wanted()) if run is not None and run.key not in self.records]

    def cost(self) -> tuple[int, float]:
        """How many runs are left, and for how many hours of one core, judging by those in the records."""
        missing = self.missing()
        unknown = sum(run is None for run in self.wanted()) // len(STAGES)  # if both stages choose the same rate
        short = sum(run.short for run in missing)
        hours = 0.0
        for number, kind in ((short, True), (len(missing) - short + unknown, False)):
            taken = [r.get("seconds", 0.0) for key, r in self.records.runs.items() if key.endswith(" short") == kind]
            hours += number * float(np.median(taken or [0.0])) / 3600  # some were interrupted
        return len(missing) + unknown, hours
