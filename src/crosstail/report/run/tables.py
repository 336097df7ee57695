"""Data first: what the page of a finished run shows, as tables.

A page is over one run, or over the folds of a protocol that leaves each domain out in turn: every fold is tested on its
own domain, so that together they test every pair once, as one run over all domains does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.metrics import SHOTS, PairAccuracy, shot_group, wilson
from crosstail.metrics.views import View
from crosstail.report.tables import Result, label_table

Record = Mapping[str, Any]
STATISTICS = {"alpha": "α", "beta": "β", "gamma": "γ"}


def tested(results: Sequence[Result]) -> PairAccuracy:
    """Hits and totals of every pair, over all folds."""
    parts = [PairAccuracy.from_json(result["test"]) for result in results]
    return PairAccuracy(np.sum([part.hits for part in parts], axis=0), np.sum([part.totals for part in parts], axis=0))


def pair_table(results: Sequence[Result]) -> pd.DataFrame:
    """One row per pair: training count and shot group, hits of so many tested, accuracy in % with Wilson's interval.

    Where domains are unseen, only they have rows, and the count is that of the class in the domains trained on.
    """
    first, accuracy = results[0], tested(results)
    counts = np.array(first["counts"])
    unseen = {r["spec"]["unseen"]: np.sum(r["counts"], axis=0) for r in results if r["spec"]["unseen"] is not None}
    for domain, of_class in unseen.items():
        counts[first["domains"].index(domain)] = of_class
    table = label_table(counts, first["domains"], first["classes"])
    table["shot"] = shot_group(table["count"], *shot_thresholds(first["spec"]["dataset"]))
    table["hits"], table["tested"] = accuracy.hits.ravel(), accuracy.totals.ravel()
    low, high = wilson(accuracy.hits.ravel(), accuracy.totals.ravel())
    table["accuracy"], table["low"], table["high"] = 100 * accuracy.matrix.ravel(), 100 * low, 100 * high
    return table[table["domain"].isin(list(unseen))].reset_index(drop=True) if unseen else table


def worst_table(pairs: pd.DataFrame, number: int = 10) -> pd.DataFrame:
    """The pairs with the lowest accuracy; of equal ones, those with the lowest interval first."""
    return pairs[pairs["tested"] > 0].sort_values(["accuracy", "high", "low"], kind="stable").head(number)


def headline_table(results: Sequence[Result]) -> pd.DataFrame:
    """One row per figure: its value in % with a 95 % interval, and what it is of; none without test samples."""
    first, accuracy, pairs = results[0], tested(results), pair_table(results)
    pairs = pairs[pairs["tested"] > 0]
    rows: list[tuple[str, Any, Any, str]] = []
    if len(pairs):
        worst = worst_table(pairs, 1).iloc[0]
        share = {n: value for n, value in zip(first["domains"], accuracy.domains, strict=True) if value is not None}
        views: dict[str, tuple[View, str]] = {
            "pair average": ("pair_average", f"{len(pairs):,} pairs, all counting alike"),
            "worst pair": ("worst_pair", f"{worst['domain']} / {worst['class']}"),
        }
        if len(share) > 1:
            views["average over domains"] = "average", f"{len(share):,} domains, all counting alike"
            views["worst domain"] = "worst_domain", min(share, key=share.__getitem__)
        else:
            views["all samples"] = "average", next(iter(share))
        rows += [(name, getattr(accuracy, of), accuracy.interval(of), what) for name, (of, what) in views.items()]
    if first["spec"]["unseen"] is None:  # of an unseen domain every pair is zero-shot
        many, few = shot_thresholds(first["spec"]["dataset"])
        sizes = {"many": f"over {many}", "medium": f"{few + 1} to {many}", "few": f"1 to {few}", "zero": "no"}
        for shot in SHOTS:
            group = pairs[pairs["shot"] == shot]
            if len(group):
                what = f"{len(group):,} with {sizes[shot]} training samples"
                own = PairAccuracy(group[["hits"]].to_numpy(), group[["tested"]].to_numpy())
                rows.append((f"{shot}-shot pairs", own.pair_average, own.interval("pair_average"), what))
    scaled = [(name, *(100 * value for value in (of, *ends)), what) for name, of, ends, what in rows]
    return pd.DataFrame(scaled, columns=["figure", "value", "low", "high", "what"])


def fold_table(results: Sequence[Result]) -> pd.DataFrame:
    """One row per unseen domain, and their mean: accuracies in %, of the first a 95 % interval, and α, β, γ."""
    rows = []
    for result in results:
        accuracy, unseen = tested([result]), result["spec"]["unseen"]
        ends = accuracy.interval(result["domains"].index(unseen)) or (None, None)
        parts = [accuracy.average, *ends, accuracy.pair_average, result["validation"]["average"]]
        transfer = [result["transferability"][name] for name in ("alpha", "beta", "gamma")]
        rows.append([unseen, *(None if part is None else 100 * part for part in parts), *transfer])
    figures = ["accuracy", "low", "high", "pair average", "validation", "α", "β", "γ"]
    table = pd.DataFrame(rows, columns=["unseen", *figures]).astype(dict.fromkeys(figures, float))
    mean = table[figures].mean()
    mean["low"], mean["high"] = (100 * end for end in tested(results).interval("average") or (np.nan, np.nan))
    return pd.concat([table, pd.DataFrame([{"unseen": "mean", **mean}])], ignore_index=True)


def accuracy_curve(result: Result, records: Sequence[Record]) -> pd.DataFrame:
    """One row per evaluation and split: the pair average in %, and whether it is the one that is reported.

    `at` counts the steps of both stages. A stage's start, before any step, is left out.
    """
    rows = [
        (r["stage"], r["step"], _at(result, r), split, 100 * r[split]["pair_average"])
        for r in records
        for split in ("validation", "test")
        if r["step"] > 0 and r[split]["pair_average"] is not None
    ]
    table = pd.DataFrame(rows, columns=["stage", "step", "at", "split", "accuracy"])
    last = max(record["stage"] for record in records)
    table["reported"] = (table["stage"] == last) & (table["step"] == result["selected_step"])
    return table


def loss_curve(result: Result, records: Sequence[Record]) -> pd.DataFrame:
    """One row per evaluation and loss term: its mean over the steps since the evaluation before."""
    rows = [(r["stage"], r["step"], _at(result, r), *term) for r in records for term in r["losses"].items()]
    return pd.DataFrame(rows, columns=["stage", "step", "at", "term", "loss"])


def transfer_curve(result: Result, records: Sequence[Record]) -> pd.DataFrame:
    """One row per evaluation that kept a trace and per statistic that is known: the mean distance of such pairs."""
    rows = [
        (r["stage"], r["step"], _at(result, r), symbol, r["trace"][name])
        for r in records
        for name, symbol in STATISTICS.items()
        if "trace" in r and r["trace"][name] is not None
    ]
    return pd.DataFrame(rows, columns=["stage", "step", "at", "statistic", "distance"])


def _at(result: Result, record: Record) -> int:
    return int(record["step"] + (record["stage"] - 1) * result["spec"]["steps"])
