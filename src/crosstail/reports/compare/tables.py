"""The data behind a report over many runs, as tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from crosstail.metrics import DEFAULT, SHOTS, Metric, find
from crosstail.reports.compare.method_runs import TAIL, MethodRun, averages
from crosstail.reports.wording import TRACKS
from crosstail.sweeps.select import standard_error
from crosstail.training.spec import split_method

Spread = Literal["sd", "se"]
KNOWN = f"pair average, {TRACKS[1]}"
PAIR_METRICS = ("pair average", KNOWN, *TAIL, "worst pair")
METRICS = ("accuracy", "class mean", "mean", "average", "worst domain", *SHOTS, *PAIR_METRICS)
RANKED = ("pair average", "accuracy", "mean")
"""What methods are ranked by: the pair average, with dg the accuracy on unseen domains, of samples as they come their
mean; a run has one of them."""

BODA = {"boda", "boda_m"}


def metric_table(found: Iterable[MethodRun]) -> pd.DataFrame:
    """One row per data set, method, seed and metric, by kind: metric, domain, or known for a run told the domain."""
    rows = []
    for one in found:
        metrics, domains = one.metrics, dict(zip(one.runs[0].domains, one.by_domain.domains, strict=True))
        factor = find(one.metric).scale
        kinds = {"metric": {name: metrics[name] for name in METRICS if name in metrics}, "domain": domains}
        if one.known:
            kinds = {"known": kinds["metric"], "metric": {KNOWN: metrics[next(iter(averages(one)))]}}
        for kind, values in kinds.items():
            rows += [(one.data, one.method, one.seed, kind, n, factor * v) for n, v in values.items() if v is not None]
    return pd.DataFrame(rows, columns=["data", "method", "seed", "kind", "metric", "value"])


def summary_table(found: Sequence[MethodRun], spread: Spread | None = None) -> pd.DataFrame:
    """One row per data set, method and metric: mean, standard deviation, number of seeds, interval, whether it is best.

    `of` is the metric that these are averages and extremes of.

    `error` is the standard deviation or the standard error of the mean over the seeds, as `spread` says for each row.
    The interval, of the two averages only, reflects the sampling of test samples; `boda` marks BoDA's rows. The worst
    pair has
    `tests`, its test samples (the fewest over the seeds), and `barely_tested`, the number of pairs with few of them.
    On data where a method uses the domain, all methods have rows of the kind "known".
    """
    metric, told = found[0].metric, {one.data for one in found if one.uses_domain}
    found = [*found, *(replace(one, known=True) for one in found if one.data in told)]
    groups = metric_table(found).groupby(["data", "method", "kind", "metric"], sort=False)["value"]
    table = groups.agg(mean="mean", std="std", n="count", error=standard_error).reset_index()
    table["spread"] = table["data"].map({one.data: spread or one.spread for one in found})
    table["error"] = table["error"].where((table["spread"] == "se") & (table["n"] > 1), table["std"])
    intervals = _intervals(found)
    keys = zip(table["kind"], table["data"], table["method"], table["metric"], strict=True)
    ends = [intervals.get(key, (np.nan, np.nan)) for key in keys]
    table[["low", "high"]] = np.array(ends, float).reshape(-1, 2)
    by_metric = table.groupby(["data", "kind", "metric"])["mean"]
    sign = find(metric).sign
    best = by_metric.transform("max") if sign > 0 else by_metric.transform("min")
    table["best"] = sign * (table["mean"] - best) >= -1e-9
    table["best"] &= by_metric.transform("nunique") > 1
    table = table.merge(_worst_pair_tests(found), how="left")
    boda = {one.method for one in found if BODA & set(one.runs[0].spec.algorithm.split("+"))}
    table["boda"] = table["method"].isin(boda)
    return table.assign(of=metric)


def _worst_pair_tests(found: Sequence[MethodRun]) -> pd.DataFrame:
    keys = ["kind", "metric", "data", "method"]
    rows = [
        (_kind(one), "worst pair", one.data, one.method, one.pairs.worst_pair_tests, one.pairs.barely_tested)
        for one in found
    ]
    table = pd.DataFrame(rows, columns=[*keys, "tests", "barely_tested"])
    return table.groupby(keys, as_index=False).agg({"tests": "min", "barely_tested": "max"})


def _kind(one: MethodRun) -> str:
    return "known" if one.known else "metric"


def _intervals(found: Sequence[MethodRun]) -> dict[tuple[str, ...], tuple[float, float]]:
    """The 95 % interval by kind, data set, method and average, of the mean over the seeds; in % of a share."""
    parts: dict[tuple[str, ...], list[MethodRun]] = {}
    for one in found:
        parts.setdefault((_kind(one), one.data, one.method), []).append(one)
    intervals: dict[tuple[str, ...], tuple[float, float]] = {}
    for key, own in parts.items():
        values, factor = [one.pairs for one in own], find(own[0].metric).scale
        for name, weighting in averages(own[0]).items():
            if ends := type(values[0]).mean_interval(values, weighting):
                intervals[*key, name] = factor * ends[0], factor * ends[1]
                if own[0].known and weighting == "pair_average":
                    intervals["metric", *key[1:], KNOWN] = intervals[*key, name]
    return intervals


def metric_of(summary: pd.DataFrame) -> Metric:
    """The metric that a summary is of."""
    return find(summary["of"].iloc[0] if len(summary) else DEFAULT)


def of_metric(
    summary: pd.DataFrame, metrics: Sequence[str], data: str | None = None, kind: str = "metric"
) -> pd.DataFrame:
    """The rows of one of these metrics, on one data set or on all, the best first."""
    rows = summary[(summary["kind"] == kind) & summary["metric"].isin(metrics)]
    if data is None:
        return rows
    lower_first = not metric_of(summary).higher_is_better
    return rows[rows["data"] == data].sort_values("mean", ascending=lower_first, kind="stable")


def overall_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per method: its average on each data set, and the mean of these if it was run on all of them."""
    rows = of_metric(summary, ["average", "accuracy"])
    order, methods = list(dict.fromkeys(rows["data"])), list(dict.fromkeys(rows["method"]))
    table = rows.pivot(index="method", columns="data", values="mean").reindex(methods)[order]
    table["mean"] = table[order].mean(axis=1, skipna=False)
    return table


def second_stage_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and method that was run with and without its second stage: `RANKED` of both."""
    table = _variants(summary, lambda name: split_method(name)[0])[["data", "variant", "of_base", "of_variant"]]
    table.columns = pd.Index(["data", "method", "without", "with"])
    return table.assign(gain=metric_of(summary).sign * (table["with"] - table["without"]))


def alignment_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and method that was run with DA and with BoDA: the gain from balancing the distance."""

    def balanced(name: str) -> str:
        algorithm, colon, stage = name.partition(":")
        return "+".join("boda" if part == "da" else part for part in algorithm.split("+")) + colon + stage

    table = _variants(summary, balanced)[["data", "base", "of_base", "of_variant"]]
    table.columns = pd.Index(["data", "method", "BoDA", "DA"])
    return table.assign(gain=metric_of(summary).sign * (table["BoDA"] - table["DA"]))


def _variants(summary: pd.DataFrame, base_of: Callable[[str], str]) -> pd.DataFrame:
    """Names and accuracies of each method that has a base method on the same data; what follows a comma is the same."""
    rows = of_metric(summary, RANKED)
    means = dict(zip(zip(rows["data"], rows["method"], strict=True), rows["mean"], strict=True))
    found = []
    for (data, method), mean in means.items():
        name, comma, rest = method.partition(",")
        if (base := base_of(name) + comma + rest) != method and (data, base) in means:
            found.append((data, base, method, means[data, base], mean))
    return pd.DataFrame(found, columns=["data", "base", "variant", "of_base", "of_variant"])


def nu_table(found: Iterable[MethodRun]) -> pd.DataFrame:
    """One row per data set, method and ν: mean and deviation over the seeds, for methods run with several ν."""
    rows = [
        (one.data, first.spec.method, first.spec.hparams["nu"], find(one.metric).scale * value)
        for one in found
        if "nu" in (first := one.runs[0]).spec.hparams and not first.searched and (value := one.ranked_by) is not None
    ]
    table = pd.DataFrame(rows, columns=["data", "method", "nu", "value"]).astype({"nu": float, "value": float})
    grouped = table.groupby(["data", "method", "nu"])["value"].agg(mean="mean", std="std", n="count").reset_index()
    several = grouped.groupby(["data", "method"])["nu"].transform("nunique") > 1
    return grouped[several].reset_index(drop=True)


def hparams_table(chosen: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, method and choice: runs, hyperparameters, trials, and what was selected on."""
    validation = chosen["run"].map(lambda run: run.validation).astype(float)
    runs = chosen["run"].map(lambda run: f"{run.spec.part} seed {run.spec.seed}".strip())
    table = chosen.assign(validation=validation, runs=runs)
    grouped = table.groupby(["data", "method", "hparams"], sort=False)
    found = grouped.agg({"runs": ", ".join, "trials": "max", "validation": "mean"}).reset_index()
    return found[[*(name for name in found if name != "hparams"), "hparams"]]


def transfer_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run for which all are defined: α, β, γ, (β + γ) − α and the test pair average in %.

    `of` is the method whatever its hyperparameters.
    """
    rows = []
    for data, method, seed, run in runs[["data", "method", "seed", "run"]].itertuples(index=False):
        alpha, beta, gamma = (getattr(run.transferability, name) for name in ("alpha", "beta", "gamma"))
        if None not in (alpha, beta, gamma, run.test):
            known = alpha, beta, gamma, beta + gamma - alpha, 100 * run.test
            rows.append((data, method, run.spec.method, seed, *known))
    return pd.DataFrame(rows, columns=["data", "method", "of", "seed", "α", "β", "γ", "separation", "accuracy"])
