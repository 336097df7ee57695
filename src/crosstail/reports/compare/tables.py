"""The data behind a report over many runs, as tables."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from crosstail.metrics import DEFAULT, SHOTS, Metric, find
from crosstail.reports.compare.method_runs import TAIL, MethodRun, averages, by_method
from crosstail.reports.wording import TRACKS
from crosstail.sweeps.select import standard_error
from crosstail.training.resolve import trained_backbone
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

    table = table.merge(_of_samples(found), how="left", on=["data", "method", "kind", "metric"])
    by_metric = table.groupby(["data", "kind", "metric"])["mean"]
    sign = find(metric).sign
    best = by_metric.transform("max") if sign > 0 else by_metric.transform("min")
    table["best"] = sign * (table["mean"] - best) >= -1e-9
    table["best"] &= by_metric.transform("nunique") > 1

    boda = {one.method for one in found if BODA & set(re.split("[+@]", one.runs[0].spec.algorithm))}
    table["boda"] = table["method"].isin(boda)
    return table.assign(of=metric)


def _of_samples(found: Sequence[MethodRun]) -> pd.DataFrame:
    """The 95 % intervals of the averages over the seeds, in % of a share, and the tests of the worst pair."""
    rows: list[dict[str, Any]] = []
    for data in dict.fromkeys(one.data for one in found):
        for known in (False, True):
            for method, own in by_method([one for one in found if one.known == known], data).items():
                values, factor = [one.pairs for one in own], find(own[0].metric).scale
                key = {"data": data, "method": method, "kind": "known" if known else "metric"}
                for name, weighting in averages(own[0]).items():
                    low, high = type(values[0]).mean_interval(values, weighting) or (np.nan, np.nan)
                    ends = {"low": factor * low, "high": factor * high}
                    rows.append({**key, "metric": name, **ends})
                    if known and weighting == "pair_average":
                        rows.append({**key, "kind": "metric", "metric": KNOWN, **ends})
                tests, few = zip(*((of.worst_pair_tests, of.barely_tested) for of in values), strict=True)
                rows.append({**key, "metric": "worst pair", "tests": min(tests), "barely_tested": max(few)})
    return pd.DataFrame(rows)


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


def everywhere(summary: pd.DataFrame) -> pd.DataFrame:
    """What methods are ranked by, higher is better: a row for each that was run on all data sets, a column for each."""
    rows = of_metric(summary, RANKED)
    table = rows.pivot(index="method", columns="data", values="mean")[list(dict.fromkeys(rows["data"]))]
    return metric_of(summary).sign * table.dropna()


def overall_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per method: its average on each data set, and the mean of these if it was run on all of them."""
    rows = of_metric(summary, ["average", "accuracy"])
    order, methods = list(dict.fromkeys(rows["data"])), list(dict.fromkeys(rows["method"]))
    table = rows.pivot(index="method", columns="data", values="mean").reindex(methods)[order]
    table["mean"] = table[order].mean(axis=1, skipna=False)
    return table


def second_stage_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and method that was run with and without its second stage: `RANKED` of both."""
    return _variants(summary, lambda name: split_method(name)[0], ["without", "with"], "with")


def alignment_table(summary: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and method that was run with DA and with BoDA: the gain from balancing the distance."""

    def balanced(name: str) -> str:
        algorithm, colon, stage = name.partition(":")
        return "+".join("boda" if part == "da" else part for part in algorithm.split("+")) + colon + stage

    return _variants(summary, balanced, ["BoDA", "DA"], "BoDA")


def _variants(summary: pd.DataFrame, base_of: Callable[[str], str], names: Sequence[str], gains: str) -> pd.DataFrame:
    """Values of each method and of its base method on the same data, and by how much one `gains` over the other.

    What follows a comma in a name is the same in both.
    """
    rows = of_metric(summary, RANKED)
    means = dict(zip(zip(rows["data"], rows["method"], strict=True), rows["mean"], strict=True))
    found = []
    for (data, method), mean in means.items():
        name, comma, rest = method.partition(",")
        base = base_of(name) + comma + rest
        if base != method and (data, base) in means:
            gain = metric_of(summary).sign * (mean - means[data, base]) * (1 if gains == names[1] else -1)
            found.append((data, method if gains == names[1] else base, means[data, base], mean, gain))
    return pd.DataFrame(found, columns=["data", "method", *names, "gain"])


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

    `of` is the method whatever its hyperparameters. Only distances in the same `space` are comparable: features as they
    are given have another scale than those that a network learns from them.
    """
    rows = []
    for data, method, seed, run in runs[["data", "method", "seed", "run"]].itertuples(index=False):
        alpha, beta, gamma = (getattr(run.transferability, name) for name in ("alpha", "beta", "gamma"))
        if None not in (alpha, beta, gamma, run.test):
            known = alpha, beta, gamma, beta + gamma - alpha, 100 * run.test
            space = f"{run.spec.backbone} {run.spec.width} {trained_backbone(run.spec)}"
            rows.append((data, method, run.spec.method, space, seed, *known))
    columns = ["data", "method", "of", "space", "seed", "α", "β", "γ", "separation", "accuracy"]
    return pd.DataFrame(rows, columns=columns)
