"""The data behind the page of a run, as tables.

A page covers one run, or several that leave out a domain or a fold each and are tested on it, so that together they
test every pair once, as one run over all domains does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail.metrics import find
from crosstail.metrics._views import View
from crosstail.reports.document.model import Table
from crosstail.reports.run.tested import Tested
from crosstail.reports.wording import number, several, shot_sizes, shown, tail_note, worst_pair
from crosstail.training.result import Evaluation, RunResult, pooled

STATISTICS = {"alpha": "α", "beta": "β", "gamma": "γ"}
ESTIMATED = (
    "There are too many pairs to compare all: each sample is compared with random ones; ± is one standard error."
)
DISTANCES = {
    "α": "same class in two domains (small is good)",
    "β": "two classes in one domain (large is good)",
    "γ": "two classes in two domains (large is good)",
}
DISTANCE_COLUMNS = {symbol: shown(symbol, 2) for symbol in DISTANCES}
DISTANCE_NOTE = "Mean distances between pairs: " + "; ".join(f"{k}: {v}" for k, v in DISTANCES.items()) + "."


def distance_table(values: Sequence[str], estimated: bool) -> Table:
    """α, β and γ as far as they are defined, with what they are between."""
    rows = [[symbol, value, between] for (symbol, between), value in zip(DISTANCES.items(), values, strict=True)]
    rows = [row for row in rows if row[1] != number(None)]
    note = ESTIMATED if estimated else ""
    return Table(header=["", "mean distance", "between"], rows=rows, words_last=True, note=note)


def worst_table(pairs: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """The pairs with the lowest accuracy; ties are broken by the lower interval."""
    return pairs[pairs["tested"] > 0].sort_values(["accuracy", "high", "low"], kind="stable").head(most)


def headline_table(tested: Tested, known: bool = False) -> pd.DataFrame:
    """One row per metric: its value in % with a 95 % interval, and what it covers; empty without test samples."""
    accuracy, every = tested.told(known), tested.pairs
    pairs = every[every["tested"] > 0]
    rows: list[tuple[str, Any, Any, str]] = []
    if len(pairs):
        share = {n: value for n, value in zip(tested.domains, accuracy.domains, strict=True) if value is not None}
        views: dict[str, tuple[View, str]] = {
            "pair average": ("pair_average", f"{several(len(pairs), 'pair')}, equally weighted"),
            "worst pair": ("worst_pair", worst_pair(accuracy, tested.domains, tested.classes)),
        }
        if len(share) > 1:
            views["average over domains"] = (
                "average",
                f"{len(share):,} domains, equally weighted, as are classes in a domain",
            )
            views["worst domain"] = "worst_domain", min(share, key=share.__getitem__)
        else:
            views["all samples"] = "average", next(iter(share))
        rows += [(name, getattr(accuracy, of), accuracy.interval(of), what) for name, (of, what) in views.items()]
        if len(share) == 1:  # the mean over domains is the domain
            rows[-1] = (*rows[-1][:2], accuracy.interval(list(tested.domains).index(next(iter(share)))), rows[-1][3])
        rows.insert(2, ("10th percentile", accuracy.tail, (np.nan, np.nan), tail_note(accuracy)))
    if not tested.zero_shot:  # in an unseen domain every pair is zero-shot
        for shot, size in shot_sizes(*tested.shots).items():
            group = pairs[pairs["shot"] == shot]
            if len(group):
                what = f"{len(group):,} with {size}"
                own = accuracy.only((every["shot"] == shot).to_numpy().reshape(accuracy.totals.shape))
                rows.append((f"{shot}-shot pairs", own.pair_average, own.interval("pair_average"), what))
    scaled = [(name, *(100 * value for value in (of, *ends)), what) for name, of, ends, what in rows]
    return pd.DataFrame(scaled, columns=["metric", "value", "low", "high", "what"])


def headline(tested: Tested, known: bool = False) -> dict[str, dict[str, Any]]:
    """The rows of `headline_table` by metric."""
    return {row["metric"]: row for row in headline_table(tested, known).to_dict("records")}  # type: ignore[misc]


def fold_table(results: Sequence[RunResult]) -> pd.DataFrame:
    """One row per unseen domain, and their mean: accuracies in %, a 95 % interval of the first, and α, β, γ.

    In one domain, the mean over pairs is the mean over classes.
    """
    rows = []
    for result in results:
        accuracy, unseen = pooled([result]), result.spec.unseen
        assert unseen is not None
        low, high = accuracy.interval(result.domains.index(unseen)) or (None, None)
        shares = {"accuracy": accuracy.average, "low": low, "high": high, "class mean": accuracy.pair_average}
        shares["validation"] = result.validation.average
        rows.append({"unseen": unseen, **_in_percent(shares), **_distances(result)})
    table = pd.DataFrame(rows)
    low, high = pooled(results).interval("average") or (None, None)
    mean = {"unseen": "mean", **table.mean(numeric_only=True), **_in_percent({"low": low, "high": high})}
    return pd.concat([table, pd.DataFrame([mean])], ignore_index=True)


def cross_validation_table(results: Sequence[RunResult]) -> pd.DataFrame:
    """One row per fold, all folds pooled, and the standard deviation over the folds: accuracies in %, and α, β, γ.

    `known` is the pair average with the domain known, the same as without for a model that ignores it. The pooled
    accuracy is of all test samples together, not the mean of the folds: a rare pair is tested in some of them only.
    """

    def row(name: int | str | None, runs: Sequence[RunResult]) -> dict[str, Any]:
        accuracy, known = pooled(runs).by_class(), pooled(runs, known=True)
        low, high = accuracy.interval() or (None, None)
        shares = {"pair average": accuracy.pair_average, "low": low, "high": high, "known": known.pair_average}
        return {"fold": name, "tested": accuracy.totals.sum(), **_in_percent({**shares, "average": accuracy.average})}

    folds = pd.DataFrame(
        row(one.spec.fold, [one]) | _in_percent({"validation": one.validation.pair_average}) | _distances(one)
        for one in results
    )
    spread = folds.drop(columns=["fold", "tested", "low", "high"]).std(numeric_only=True)
    added = [row("pooled", results), {"fold": "± over folds", **spread}]
    return pd.concat([folds, pd.DataFrame(added)], ignore_index=True)


def _in_percent(shares: Mapping[str, float | None]) -> dict[str, float]:
    return {name: np.nan if share is None else 100 * share for name, share in shares.items()}


def _distances(result: RunResult) -> dict[str, float]:
    """α, β and γ by their symbols."""
    found = ((symbol, getattr(result.transferability, name)) for name, symbol in STATISTICS.items())
    return {symbol: np.nan if value is None else value for symbol, value in found}


def counted_steps(records: Sequence[Evaluation]) -> list[int]:
    """The number of steps of all stages up to each evaluation."""
    first = max((record.step for record in records if record.stage == 1), default=0)
    return [record.step + (record.stage - 1) * first for record in records]


def has_learnt(record: Evaluation, records: Sequence[Evaluation]) -> bool:
    """Whether an evaluation is of a trained or fitted model: not the first of a stage that has steps."""
    return record.step > 0 or (record.stage == 2 and sum(other.stage == 2 for other in records) == 1)


def selection_curve(result: RunResult, records: Sequence[Evaluation]) -> pd.DataFrame:
    """One row per evaluation and split: `selected_on`, in % if it is a share, and whether it is the one reported.

    With `--average` these are the values of the averaged weights, which are selected and reported. `at` counts the
    steps of both stages. The start of a stage, before any step, is left out.
    """
    rows, on = [], result.spec.selected_on
    for at, r in zip(counted_steps(records), records, strict=True):
        for split in ("validation", "test"):
            value = getattr(r.averaged or r, split).value(on)
            if has_learnt(r, records) and value is not None:
                rows.append((r.stage, r.step, at, split, find(on).scale * value))
    table = pd.DataFrame(rows, columns=["stage", "step", "at", "split", "value"])
    last = max(record.stage for record in records)
    table["reported"] = (table["stage"] == last) & (table["step"] == result.selected_step)
    return table


def loss_curve(records: Sequence[Evaluation]) -> pd.DataFrame:
    """One row per evaluation and loss term: its mean over the steps since the previous evaluation."""
    counted = zip(counted_steps(records), records, strict=True)
    rows = [(r.stage, r.step, at, *term) for at, r in counted for term in r.losses.items()]
    return pd.DataFrame(rows, columns=["stage", "step", "at", "term", "loss"])


def transfer_curve(records: Sequence[Evaluation]) -> pd.DataFrame:
    """One row per traced evaluation of stage one and statistic that is defined: the mean distance of such pairs."""
    rows = [
        (r.stage, r.step, r.step, symbol, value)
        for r in records
        for name, symbol in STATISTICS.items()
        if (value := getattr(r.trace, name, None)) is not None
    ]
    return pd.DataFrame(rows, columns=["stage", "step", "at", "statistic", "distance"])
