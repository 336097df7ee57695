"""Is the default on fixed features better than the others? docs/results/default.md.

The default `frozen:blend` and its competitors, on three splits of sets of frozen or sentence features with long tails.
Takes a quarter of an hour on one core once the images are embedded; finished runs are not repeated:

    python -m studies.default_method --data ../shared/data --out runs/default
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from studies.result_options import result_options

from crosstail.data import load_source, protocols
from crosstail.metrics import Answered, Answers, Difference, compare_methods
from crosstail.metrics._views import View
from crosstail.sweeps.worker import inputs
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.loop import Diverged
from crosstail.training.resolve import resolve
from crosstail.training.result import RunResult
from crosstail.training.run import Run
from crosstail.training.spec import split_method

DEFAULT, BASE = "frozen:blend", "erm"
SHOWN = (BASE, "erm:retrain", "bsoftmax", "boda:retrain", "frozen:pooled", DEFAULT)
SEEDS = (10, 11, 12)  # other splits than those that the form of the method was chosen on
OTHERS = tuple(method for method in SHOWN if method != DEFAULT)
UNSEEN = (BASE, "bsoftmax", "coral:retrain", "boda+coral:retrain", "frozen:pooled", DEFAULT)
STEPS = 300  # as in a race
PAGE = Path(__file__).parents[1] / "docs/results/default.md"
FROZEN: dict[str, Any] = {"backbone": "efficientnet_lite0", "tune": "none"}


@dataclass(frozen=True)
class Setting:
    """A set of features with long tails."""

    name: str
    spec: RunSpec


def settings(data: Path) -> Iterator[Setting]:
    """The sets, with an asterisk if the blend was chosen on their validation samples."""
    photos = str(data / "office-caltech10")
    lesions = {"dataset": str(data / "ham10000/manifest.csv"), "columns": LESIONS}
    opposite = ("forward:20", "backward:20") * 2
    yield Setting("digits (demo) *", RunSpec(dataset="digits", **FROZEN))
    yield Setting("Office-Caltech10, opposite tails", RunSpec(dataset=photos, labels=opposite, **FROZEN))
    yield Setting("the same at 64 pixels *", RunSpec(dataset=photos, labels=opposite, resolution=64, **FROZEN))
    yield Setting("ham10000 by lesion", RunSpec(**lesions, **FROZEN))
    yield Setting("the same, opposite tails *", RunSpec(**lesions, labels=TAILS * 2, **FROZEN))
    crisis = str(data / "crisis.npz")
    yield Setting("crisis", RunSpec(dataset=crisis))
    yield Setting(
        "crisis, opposite tails *", RunSpec(dataset=crisis, labels=("forward:50", "backward:50") * 4 + ("forward:50",))
    )


UNSEEN_SETS = ("Office-Caltech10, opposite tails", "the same at 64 pixels *")
LESIONS = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}
TAILS = ("forward:100", "backward:100")


def measure(task: tuple[Setting, int, Path]) -> list[dict[str, Any]]:
    """Test accuracies, in percent, of the methods on one split of a set."""
    setting, seed, out = task
    torch.set_num_threads(1)
    found = []
    for method in SHOWN:
        for result, folder in run(setting.spec, method, seed, out):
            test, known = result.test, result.known.test if result.known else result.test
            values = {"pairs": test.pair_average, "few": test.shots["few"], "zero": test.shots["zero"]}
            values |= {"tenth": test.tenth_percentile, "known": known.pair_average}
            row = {"set": setting.name, "method": method, "seed": seed, "folders": [folder]}
            found.append(row | {n: None if v is None else 100 * v for n, v in values.items()})
    return found


def measure_unseen(task: tuple[Setting, int, Path]) -> list[dict[str, Any]]:
    """The mean test accuracy of the methods on domains that are left out in turn."""
    setting, seed, out = task
    torch.set_num_threads(1)
    rows = []
    for method in UNSEEN:
        found = run(replace(setting.spec, protocol="dg"), method, seed, out)
        accuracy = 100 * np.mean([result.test.average for result, _ in found])
        row = {"set": setting.name, "method": method, "seed": seed, "accuracy": accuracy}
        rows.append(row | {"folders": [folder for _, folder in found]})
    return rows


def run(spec: RunSpec, method: str, seed: int, out: Path) -> list[tuple[RunResult, str]]:
    """The results of a method and their folders: one, or one for each domain that is left out; none if it diverges."""
    algorithm, stage = split_method(method)
    own: dict[str, Any] = {"algorithm": algorithm, "second_stage": stage, "seed": seed, "data_seed": seed}
    spec = resolve(replace(spec, steps=STEPS, evaluations=3, augment=False, **own))
    try:
        specs = [spec] if not spec.unseen_domains else protocols.parts(spec, load_source(spec))
        return [(train_run(one, out / one.key, inputs=inputs(one)).result, str(out / one.key)) for one in specs]
    except Diverged as error:
        print(spec.dataset, method, seed, error, flush=True)
        return []


def gains(part: pd.DataFrame, others: Sequence[str], of: View) -> list[str]:
    """The lead of the default over other methods, split by split; bold if significant, corrected for their number."""
    methods = {
        method: [Answered(seed, answers(folders)) for seed, folders in zip(own["seed"], own["folders"], strict=True)]
        for method, own in part.groupby("method")
    }
    sides = {method: methods[method] for method in (*others, DEFAULT)}
    found = compare_methods(sides, DEFAULT, of, paired=True)
    return [lead(found[method]) for method in others]


def answers(folders: Sequence[str]) -> Answers:
    """The answers of a run for its test samples, or those of the runs that leave out each domain."""
    return Answers.pooled([test for folder in folders if (test := Run(Path(folder)).test) is not None])


def lead(behind: Difference | None) -> str:
    """By how much another method is behind the default."""
    assert behind is not None
    mean, low, high = (100 * value for value in (-behind.estimate, -behind.high, -behind.low))
    text = f"{mean:+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")
    return f"**{text}**" if behind.sure else text


def unseen_rows(table: pd.DataFrame) -> str:
    """A row for each set, with the mean over the splits and its standard deviation."""
    rows = []
    for name, part in table.groupby("set", sort=False):
        by = part.pivot(index="seed", columns="method", values="accuracy")
        cells = [f"{by[method].mean():.1f} ± {by[method].std(ddof=1):.1f}" for method in UNSEEN]
        rows.append(f"| {name} | {' | '.join([*cells, *gains(part, [BASE], 'average')])} |")
    return "\n".join(rows)


def page(table: pd.DataFrame, unseen: pd.DataFrame) -> str:
    """The page of all runs."""
    rows, leads, tails = [], [], []
    for name, part in table.groupby("set", sort=False):
        means = part.groupby("method")[["pairs", "few", "zero", "tenth", "known"]].mean()
        cells = [" / ".join("–" if np.isnan(v) else f"{v:.1f}" for v in means.loc[m][:3]) for m in SHOWN]
        rows.append(f"| {name} | {' | '.join(cells)} |")
        leads.append(f"| {name} | {' | '.join(gains(part, OTHERS, 'pair_average'))} |")
        tenth = [f"{means.loc[method, 'tenth']:.1f}" for method in SHOWN]
        tails.append(f"| {name} | {' | '.join(tenth)} | {means.loc[DEFAULT, 'known']:.1f} |")
    return TEXT.format(
        rows="\n".join(rows),
        leads="\n".join(leads),
        tails="\n".join(tails),
        seeds=len(SEEDS),
        sets=table["set"].nunique(),
        steps=STEPS,
        header=" | ".join(f"`{method}`" for method in SHOWN),
        others=" | ".join(f"over `{method}`" for method in OTHERS),
        rule="|---" * (len(SHOWN) + 1),
        unseen=unseen_rows(unseen),
        unseen_header=" | ".join(f"`{method}`" for method in UNSEEN),
    )


def main() -> None:
    """Complete the runs and write the page."""
    parser = result_options(__doc__, "runs/default")
    parser.add_argument("--workers", type=int, default=1, help="splits that are run at once, one core each")
    given = parser.parse_args()
    tasks = [(setting, seed, given.out) for seed in SEEDS for setting in settings(given.data)]
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        found = [row for rows in pool.map(measure, tasks) for row in rows]
        left_out = [task for task in tasks if task[0].name in UNSEEN_SETS]
        unseen = [row for rows in pool.map(measure_unseen, left_out) for row in rows]
    PAGE.write_text(page(pd.DataFrame(found), pd.DataFrame(unseen)), encoding="utf-8")


TEXT = """# The default on fixed features

`crosstail fit` on frozen or given features uses `frozen:blend` ([how it works](../method.md)). Here it is compared
with others on {seeds} splits of {sets} sets with long tails. Test accuracy in percent, mean over the splits: pair
average / few-shot pairs (1 to 20 training samples; digits: 1 to 8) / pairs with none. The model is not told the
domain of a test sample. Frozen EfficientNet-Lite0, for crisis sentence embeddings; the others train a two-layer
network for {steps} steps, as in a race, with their default hyperparameters.
Written by `python -m studies.default_method`.

| set | {header} |
{rule}|
{rows}

The form of the method was chosen by validation accuracy and log loss on other splits of these sets: the blend on
those with an asterisk, the pooled part on all but Office-Caltech10 at full size ([what was
tried](../method.md#what-was-tried)).

## Gains over the others

Differences in pair average with 95 % intervals: what to expect of another split and other test samples, by
[`compare_methods`](../intervals.md), split by split. Bold: significant at 5 %, corrected for the five methods.

| set | {others} |
{rule}|
{leads}

## The worst tenth of the pairs

The 10th percentile over pairs, and last, the default's pair average where it is told the domain.

| set | {header} | domain known |
{rule}|---|
{tails}

## On a domain that was never seen

`--protocol dg`: each domain is left out in turn. Mean accuracy on 80 % of the unseen domain, ± standard deviation
over the {seeds} splits, and the gain of the default over ERM as above.

| set | {unseen_header} | gain over `erm` |
{rule}|---|
{unseen}
"""


if __name__ == "__main__":
    main()
