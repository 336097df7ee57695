"""The paper's claims on Digits-MLT: run what the records lack, the most important first.

    python -m studies.paper_claims.digits --data digits-mlt.npz
    python -m studies.paper_claims.page

`--quick` is a small version of everything in at most ten minutes, with its own records.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from studies.paper_claims.records import FOLDER, HERE, Records
from studies.paper_claims.series import Bench, chosen, plan_of, search

from crosstail.sweep.launchers._launcher import Resources, launcher
from crosstail.sweep.plan import Plan, draw
from crosstail.sweep.store import Store
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

DATA, HALVED = "digits-mlt.npz", "digits-mlt-16.npz"
CONFIGURATIONS = {
    "forward–backward": ("forward:100", "backward:100"),
    "uniform–uniform": ("uniform", "uniform"),
    "forward–forward": ("forward:100", "forward:100"),
    "backward–forward": ("backward:100", "forward:100"),
    "backward–backward": ("backward:100", "backward:100"),
}
DIVERGENT = "forward–backward"
ERM, BODA = "erm:retrain", "boda:retrain"
OTHERS = ("da:retrain", "dann:retrain", "coral:retrain")


@dataclass(frozen=True)
class Setting:
    """A network and a budget: trials, seeds, and the number and length of ERM models for α, β, γ."""

    title: str
    network: RunSpec
    trials: int
    seeds: int
    models: int
    model_steps: int
    ablations: dict[str, tuple[float, ...]]
    configurations: tuple[str, ...] = tuple(CONFIGURATIONS)

    def plan(self, configuration: str, entries: Sequence[str] = (ERM, BODA)) -> Plan:
        """The search for some methods; a run with a second stage also has the results of its first."""
        shared = replace(self.network, labels=CONFIGURATIONS[configuration])
        return plan_of(shared, entries, (None,), self.trials, self.seeds)

    def varied(self, configuration: str) -> list[RunSpec]:
        """ERM models that differ only in their hyperparameters."""
        labels = CONFIGURATIONS[configuration]
        shared = replace(self.network, labels=labels, steps=self.model_steps, evaluations=1)
        return [replace(shared, hparams=hparams) for hparams in draw("erm", range(self.models), shared)]

    def ablated(self, name: str, records: Records) -> dict[float, list[RunSpec]]:
        """BoDA's chosen hyperparameters except one, with all seeds, by the value of that one."""
        plan = self.plan(DIVERGENT, (BODA,))
        best = chosen(plan, BODA, 2, records).hparams
        changed = {value: plan.finals(BODA, {**best, name: value}) for value in self.ablations[name]}
        return {value: [spec for (spec,) in seeds] for value, seeds in changed.items()}


COMMON: dict[str, Any] = {"freeze": False, "augment": False, "evaluations": 5}
FROZEN = COMMON | {"freeze": True}
SETTINGS = {
    "cnn": Setting(
        "small CNN from pixels",
        resolve(RunSpec(dataset=HALVED, algorithm="erm", backbone="small_cnn", width=16, steps=3000, **COMMON)),
        trials=4,
        seeds=3,
        models=20,
        model_steps=500,
        ablations={"weight": (0.01, 1.0), "nu": (0.0, 1.0), "temperature": (1.0,)},
    ),
    "frozen": Setting(
        "MLP on frozen features",
        resolve(RunSpec(dataset=DATA, algorithm="erm", backbone="efficientnet_lite0", steps=1000, **FROZEN)),
        trials=8,
        seeds=3,
        models=20,
        model_steps=200,
        ablations={"weight": (0.03, 0.1, 0.3, 1.0), "nu": (0.0, 0.5, 1.0, 1.5), "temperature": (1.0,)},
    ),
}
QUICK = {
    "cnn": replace(
        SETTINGS["cnn"],
        network=replace(SETTINGS["cnn"].network, steps=200, evaluations=2),
        trials=1,
        seeds=2,
        models=3,
        model_steps=50,
        configurations=(DIVERGENT, "uniform–uniform"),
    )
}


def halved(data: Path, out: Path) -> Path:
    """The same images at half the width and height (means of 2 × 2 pixels): a quarter of the work for a CNN."""
    if not out.exists():
        arrays: dict[str, Any] = dict(np.load(data))
        n, height, width, channels = arrays["x"].shape
        squares = arrays["x"].reshape(n, height // 2, 2, width // 2, 2, channels)
        arrays["x"] = np.rint(squares.mean(axis=(2, 4), dtype=np.float32)).astype(np.uint8)
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_suffix(".part.npz")
        np.savez(partial, **arrays)
        partial.replace(out)
    return out


def run(bench: Bench, setting: Setting) -> None:
    """All experiments of one setting: the comparison, α β γ of many models, and the ablations."""
    for configuration in setting.configurations:
        search(bench, setting.plan(configuration), look=True)
    for configuration in setting.configurations:
        bench.run(setting.varied(configuration))
    for name in setting.ablations:
        bench.run([spec for seeds in setting.ablated(name, bench.records).values() for spec in seeds])
    search(bench, setting.plan(DIVERGENT, OTHERS))


def show(setting: Setting, records: Records) -> None:
    """Print the tables that matter most; the page has them all."""
    from studies.paper_claims import tables  # which imports this module

    print(f"\n{setting.title}, {setting.network.steps} steps, {setting.trials} trials, {setting.seeds} seeds\n")
    print("\n".join(tables.comparison(setting, records) + tables.second_stages(setting, records)), flush=True)


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data" / DATA)
    parser.add_argument("--records", type=Path, help=f"default: {FOLDER}, or RUNS/records with --quick")
    parser.add_argument("--runs", type=Path, default=HERE / "runs", help="where runs are stored")
    parser.add_argument("--setting", choices=SETTINGS, action="append", help="default: all of them")
    parser.add_argument("--launcher", default="local")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(words)
    settings = QUICK if given.quick else SETTINGS
    folder = given.records or (given.runs / "records" if given.quick else FOLDER)
    store = Store(given.runs)
    with launcher(given.launcher, store, Resources(given.workers)) as crew:
        for name in given.setting or settings:
            setting = settings[name]
            data = halved(given.data, given.runs / HALVED) if setting.network.dataset == HALVED else given.data
            bench = Bench(data, store, crew, Records(folder / f"digits-{name}.jsonl"))
            run(bench, setting)
            show(setting, bench.records)


if __name__ == "__main__":
    main()
