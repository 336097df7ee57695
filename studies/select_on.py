"""Which validation metric should be selected on? docs/results/select-on.md.

Training does not depend on what is selected on, so every run is trained once and its evaluations, which have all
metrics, are selected from afterwards: the step within a run, and the trial of a random search. Takes about ten minutes
on one core once the images are embedded; finished runs are not repeated, and the page is of the splits that are
complete:

    python -m studies.select_on --data ../shared/data --out runs/select-on
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from result_options import result_options

from crosstail.metrics import Metric, find, mean_interval
from crosstail.sweeps.plan import draw
from crosstail.sweeps.worker import inputs
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged
from crosstail.training.resolve import resolve
from crosstail.training.result import Evaluation, best_on_validation, selection_score

PAGE = Path(__file__).parents[1] / "docs/results/select-on.md"
ALGORITHMS = ("erm", "bsoftmax", "boda", "group_dro")
SEEDS, TRIALS, STEPS, EVALUATIONS, WIDTH = (20, 21, 22, 23, 24), 3, 200, 10, 64
BASE = "pair_average"
CRITERIA = (BASE, "average", "worst_domain", "worst_pair", "macro_f1", "log_loss")  # evaluations have all of them
SHOWN = {
    "pair_average": "pair average",
    "worst_domain": "worst domain",
    "tenth_percentile": "10th percentile",
    "worst_pair": "worst pair",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
}


def settings(data: Path) -> Iterator[tuple[str, RunSpec]]:
    """Four sets of features with long tails."""
    frozen: dict[str, Any] = {"backbone": "efficientnet_lite0", "tune": "none"}
    tails = ("forward:20", "backward:20") * 2
    lesions = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}
    yield "digits (demo)", RunSpec(dataset="digits", **frozen)
    yield "crisis", RunSpec(dataset=str(data / "crisis.npz"))
    yield "ham10000 by lesion", RunSpec(dataset=str(data / "ham10000/manifest.csv"), columns=lesions, **frozen)
    yield "Office-Caltech10, opposite tails", RunSpec(dataset=str(data / "office-caltech10"), labels=tails, **frozen)


def trials(resolved: RunSpec, algorithm: str, seed: int, out: Path) -> list[list[Evaluation]]:
    """The evaluations of every trial of a search on one split; the first trial has the default hyperparameters."""
    shared, found = replace(resolved, algorithm=algorithm, seed=seed, data_seed=seed), []
    for hparams in draw(algorithm, range(TRIALS), shared, seed):
        one = replace(shared, hparams=hparams)
        try:
            if not (out / one.key / "result.json").exists():
                train_run(one, out / one.key, inputs=inputs(one), keep=False)
            found.append(RunFolder(out / one.key).records())
        except Diverged as error:
            print(algorithm, seed, error, flush=True)
    return found


def selected(found: Sequence[Sequence[Evaluation]], on: str) -> Evaluation:
    """The best step of the best trial on validation."""
    best = [best_on_validation(records, on) for records in found]
    return max(best, key=lambda record: selection_score(record.validation, on) or 0.0)


def measure(found: Sequence[Sequence[Evaluation]], row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The test metrics of what every criterion selects: of the steps of one run, and of the trials of a search."""
    for what, own in (("step", found[:1]), ("trial", found)):
        for on in CRITERIA:
            test = selected(own, on).test
            yield row | {"what": what, "on": on, **{name: getattr(test, name) for name in SHOWN}}


def named(metric: str) -> Metric:
    """The metric of a column: the 10th percentile is one of accuracies too."""
    return find("accuracy" if metric == "tenth_percentile" else metric)


def gain(values: "pd.Series[float]", metric: str) -> str:
    """Mean and Student's 95 % interval over splits; in points where the metric is a share."""
    of = named(metric)
    mean, low, high = (of.scale * value for value in (values.mean(), *mean_interval(values)))
    return f"{mean:+.{of.digits}f} ({low:+.{of.digits}f} to {high:+.{of.digits}f})".replace("-", "−")


def against_base(table: pd.DataFrame) -> pd.DataFrame:
    """The difference to the default, by criterion, set and seed: the mean over the algorithms."""
    by = table.set_index(["on", "set", "seed", "algorithm"])[list(SHOWN)].astype(float)
    base = by.loc[BASE]
    found = {on: (by.loc[on] - base).groupby(["set", "seed"]).mean() for on in CRITERIA if on != BASE}
    return pd.concat(found, names=["on"])


def rows(differences: pd.DataFrame, by: Sequence[str]) -> str:
    """Lines of a table: a mean and an interval over the splits for every metric."""
    found = []
    for key, part in differences.groupby(list(by), sort=False):
        names = [f"`{name}`" if name in CRITERIA else name for name in (key if isinstance(key, tuple) else (key,))]
        found.append(" | ".join(["", *names, *(gain(part[name], name) for name in SHOWN), ""]).strip())
    return "\n".join(found)


def verdict(trial: pd.DataFrame, on: str) -> str:
    """Whether selecting on a metric improves that metric on the test set, and what it costs in pair average."""
    own, pairs = trial.loc[on][on], trial.loc[on][BASE]
    low, high = mean_interval(named(on).sign * own)
    word = "improves" if low > 0 else "gets worse" if high < 0 else "does not change beyond the noise"
    cost = f"pair average {gain(pairs, BASE)}"
    return f"- `{on}`: the {SHOWN[on]} on the test set {word}, {gain(own, on)}; {cost}."


def page(table: pd.DataFrame) -> str:
    """The page of all complete splits."""
    trial = against_base(table[table["what"] == "trial"])
    means = table[(table["what"] == "trial") & (table["on"] == BASE)].groupby("set", sort=False)[list(SHOWN)].mean()
    base = [
        " | ".join(["", name, *(named(m).shown(v, unit=False) for m, v in own.items()), ""])
        for name, own in means.iterrows()
    ]
    return TEXT.format(
        header=" | ".join(SHOWN.values()),
        rule="|---" * (len(SHOWN) + 1) + "|",
        algorithms=", ".join(f"`{name}`" for name in ALGORITHMS),
        seeds=table["seed"].nunique(),
        clusters=table.groupby(["set", "seed"]).ngroups,
        steps=STEPS,
        width=WIDTH,
        evaluations=EVALUATIONS,
        trials=TRIALS,
        verdicts="\n".join(verdict(trial, on) for on in CRITERIA if on != BASE and on in SHOWN),
        base="\n".join(line.strip() for line in base),
        trial=rows(trial.reset_index(), ["on"]),
    )


def main() -> None:
    """Complete the runs split by split, and write the page after each seed."""
    parser = result_options(__doc__, "runs/select-on")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="splits of every set")
    given = parser.parse_args()
    torch.set_num_threads(1)
    own: dict[str, Any] = {"algorithm": "erm", "steps": STEPS, "evaluations": EVALUATIONS, "width": WIDTH}
    sets = {name: resolve(replace(spec, **own, augment=False)) for name, spec in settings(given.data)}
    found: list[dict[str, Any]] = []
    for seed in SEEDS[: given.seeds]:
        for name, spec in sets.items():
            for algorithm in ALGORITHMS:
                runs = trials(spec, algorithm, seed, given.out)
                found += measure(runs, {"set": name, "seed": seed, "algorithm": algorithm})
            print(seed, name, flush=True)
        PAGE.write_text(page(pd.DataFrame(found)), encoding="utf-8")


TEXT = """# What to select on

Does it matter which validation metric selects the step and the trial ([`--select-on`](../sweeps.md#what-to-select-on))?
{algorithms} on {seeds} splits of four sets of frozen or sentence features with long tails: {steps} steps of a network
of {width} units, {evaluations} evaluations, and {trials} trials of a random search each. Each number is the change of a
test metric if another metric than `pair_average`, the default, selects: the mean over the algorithms, with Student's
95 % interval over the {clusters} splits of all sets. In points; log loss as it is (lower is better).
Written by `python -m studies.select_on`.

Does a metric improve if it is selected on? For the trial and its step:

{verdicts}

Selecting the trial and its step (`crosstail sweep`):

| selected on | {header} |
{rule}
{trial}

What the default reaches, in percent:

| set | {header} |
{rule}
{base}
"""


if __name__ == "__main__":
    main()
