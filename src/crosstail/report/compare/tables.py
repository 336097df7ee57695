"""Data first: the tables of a report, over many runs."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import PairAccuracy, paired_difference
from crosstail.metrics.views import View
from crosstail.report.run.tables import tested
from crosstail.report.tables import Result
from crosstail.training.folder import RunFolder

FIGURES = ("average", "worst domain", "many", "medium", "few", "zero", "pair average", "worst pair")
BODA = {"boda", "boda_m"}


@dataclass(frozen=True)
class Entry:
    """A method on a data set from one seed: one run, or one for every domain that is unseen in turn."""

    data: str
    method: str
    seed: int
    runs: pd.DataFrame

    @cached_property
    def results(self) -> list[Result]:
        """Of its runs."""
        return list(self.runs["result"])


def entries(chosen: pd.DataFrame) -> tuple[list[Entry], list[str]]:
    """The runs by data set, method and seed, and sentences on what is left out as it lacks an unseen domain."""
    needed: dict[Any, set[str]] = {data: set(runs["unseen"].dropna()) for data, runs in chosen.groupby("data")}
    found, missing = [], []
    for (data, method, seed), runs in chosen.groupby(["data", "method", "seed"], sort=False):
        lacking = needed[data] - set(runs["unseen"])
        if lacking:
            missing.append(f"{method} on {data}, seed {seed}: no run without {', '.join(sorted(lacking))}")
        else:
            found.append(Entry(str(data), str(method), int(str(seed)), runs))
    return found, missing


def figure_table(found: Iterable[Entry]) -> pd.DataFrame:
    """One row per data set, method, seed and figure: its value in %; `kind` tells domains from the other figures."""
    rows = []
    for entry in found:
        accuracy, first = tested(entry.results), entry.results[0]
        shots = first["test"]["shots"] if first["spec"]["unseen"] is None else {}
        values = {
            "average": accuracy.average,
            "worst domain": accuracy.worst_domain,
            **{shot: shots.get(shot) for shot in FIGURES[2:6]},
            "pair average": accuracy.pair_average,
            "worst pair": accuracy.worst_pair,
        }
        domains = dict(zip(first["domains"], accuracy.domains, strict=True))
        for kind, known in (("figure", values), ("domain", domains)):
            rows += [(entry.data, entry.method, entry.seed, kind, n, v) for n, v in known.items() if v is not None]
    table = pd.DataFrame(rows, columns=["data", "method", "seed", "kind", "figure", "value"])
    table["value"] *= 100
    return table


def summary_table(chosen: pd.DataFrame) -> pd.DataFrame:
    """One row per data set, method and figure: mean, standard deviation, number of seeds, interval, best or not.

    The interval, of the two averages only, is for the chance of which samples were tested; `boda` marks BoDA's rows.
    """
    found, _ = entries(chosen)
    groups = figure_table(found).groupby(["data", "method", "kind", "figure"], sort=False)["value"]
    table = groups.agg(mean="mean", std="std", n="count").reset_index()
    reach = {("figure", *key): error for key, error in _sampling_errors(found).items()}
    keys = zip(table["kind"], table["data"], table["method"], table["figure"], strict=True)
    error = pd.Series([reach.get(key, np.nan) for key in keys], table.index, float)
    table["low"], table["high"] = table["mean"] - error, table["mean"] + error
    by_figure = table.groupby(["data", "kind", "figure"])["mean"]
    table["best"] = (table["mean"] >= by_figure.transform("max") - 1e-9) & (by_figure.transform("nunique") > 1)
    algorithm = dict(zip(chosen["method"], chosen["algorithm"], strict=True))
    table["boda"] = [bool(BODA & set(algorithm[method].split("+"))) for method in table["method"]]
    return table


def _sampling_errors(found: Sequence[Entry]) -> dict[tuple[str, str, str], float]:
    """Half the width of a 95 % interval, in points, by data set, method and average.

    An average is a weighted sum of the pairs' accuracies p, each of n samples, so that its variance is that of the
    sum: w² p (1 − p) / n over the pairs. For the mean of several runs on the same samples this is an upper limit.
    """
    parts: dict[tuple[str, str], list[PairAccuracy]] = {}
    for entry in found:
        parts.setdefault((entry.data, entry.method), []).append(tested(entry.results))
    errors = {}
    for key, accuracies in parts.items():
        totals = accuracies[0].totals
        n = np.maximum(totals, 1)
        chance = np.mean([accuracy.hits for accuracy in accuracies], axis=0) / n
        of_domain = totals.sum(axis=1, keepdims=True)
        weights = {
            "pair average": (totals > 0) / max(int((totals > 0).sum()), 1),
            "average": totals / np.maximum(of_domain, 1) / max(int((of_domain > 0).sum()), 1),
        }
        for name, weight in weights.items():
            errors[*key, name] = 100 * 1.96 * float(np.sqrt((weight**2 * chance * (1 - chance) / n).sum()))
    return errors


def figures_of(of_data: pd.DataFrame) -> list[tuple[str, str]]:
    """The (kind, figure) columns of a data set's table: the figures in their order, then the domains."""
    present = dict.fromkeys(zip(of_data["kind"], of_data["figure"], strict=True))
    figures = [("figure", name) for name in FIGURES if ("figure", name) in present]
    return figures + [key for key in present if key[0] == "domain"]


def overall_table(summary: pd.DataFrame, figure: str = "average") -> pd.DataFrame:
    """One row per method: the mean of a figure on each data set, and over all of them where it was run on all."""
    rows = summary[(summary["kind"] == "figure") & (summary["figure"] == figure)]
    order = list(dict.fromkeys(rows["data"]))
    table = rows.pivot(index="method", columns="data", values="mean").reindex(list(dict.fromkeys(rows["method"])))[
        order
    ]
    table["mean"] = table[order].mean(axis=1, skipna=False)
    return table


def decoupling_table(summary: pd.DataFrame, figure: str = "pair average") -> pd.DataFrame:
    """One row per data set and method that was run both ways: a figure without and with the second stage."""
    table = _variants(summary, figure, lambda name: name.replace(", decoupled", ""))
    table = table.rename(columns={"base": "without", "variant": "with"})
    return table.assign(gain=table["with"] - table["without"])


def alignment_table(summary: pd.DataFrame, figure: str = "pair average") -> pd.DataFrame:
    """One row per data set and method of which there is DA as well as BoDA: what balancing the distance brings."""

    def neutral(name: str) -> str:
        algorithm, comma, rest = name.partition(",")
        return "+".join("boda" if part == "da" else part for part in algorithm.split("+")) + comma + rest

    table = _variants(summary, figure, neutral).rename(columns={"base": "BoDA", "variant": "DA"})
    return table.assign(gain=table["BoDA"] - table["DA"])


def _variants(summary: pd.DataFrame, figure: str, base: Callable[[str], str]) -> pd.DataFrame:
    """One row per method that has a base on the same data: the figure of both."""
    rows = summary[(summary["kind"] == "figure") & (summary["figure"] == figure)]
    means = dict(zip(zip(rows["data"], rows["method"], strict=True), rows["mean"], strict=True))
    found = [
        (data, other, means[data, other], mean)
        for (data, method), mean in means.items()
        if (other := base(method)) != method and (data, other) in means
    ]
    return pd.DataFrame(found, columns=["data", "method", "base", "variant"])


def nu_table(chosen: pd.DataFrame, figure: str = "pair average") -> pd.DataFrame:
    """One row per data set, algorithm and ν: mean and deviation over the seeds, where there are two ν or more."""
    nu = chosen["hparams"].map(lambda words: json.loads(words).get("nu"))
    with_nu = chosen[nu.notna()].assign(nu=nu.astype(float))
    if with_nu.empty:
        return pd.DataFrame(columns=["data", "method", "nu", "mean", "std", "n"])
    names = with_nu["algorithm"] + with_nu["decouple"].map({True: ", decoupled", False: ""})
    with_nu = with_nu.assign(base=names)
    found, _ = entries(with_nu)
    values = figure_table(found).query("kind == 'figure' and figure == @figure")
    of_run = with_nu[["data", "method", "seed", "nu", "base"]].drop_duplicates()
    table = values.merge(of_run, on=["data", "method", "seed"])
    grouped = table.groupby(["data", "base", "nu"])["value"].agg(mean="mean", std="std", n="count").reset_index()
    several = grouped.groupby(["data", "base"])["nu"].transform("nunique") > 1
    return grouped[several].rename(columns={"base": "method"}).reset_index(drop=True)


def hparams_table(chosen: pd.DataFrame) -> pd.DataFrame:
    """One row per data set and method: its hyperparameters, of how many trials, and their validation figure in %."""
    validation = chosen["result"].map(lambda result: result["validation"]["pair_average"]).astype(float)
    grouped = chosen.assign(validation=100 * validation).groupby(["data", "method"], sort=False)
    return grouped.agg(
        hparams=("hparams", "first"), trials=("trials", "max"), validation=("validation", "mean")
    ).reset_index()


def transfer_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per run that has them all: α, β, γ, (β + γ) − α and its pair average in %."""
    rows = []
    for row in runs.itertuples():
        result: Any = row.result
        values = [result["transferability"][name] for name in ("alpha", "beta", "gamma")]
        accuracy = result["test"]["pair_average"]
        if None not in (*values, accuracy):
            alpha, beta, gamma = values
            rows.append((row.data, row.method, row.algorithm, row.seed, *values, beta + gamma - alpha, 100 * accuracy))
    names = ["data", "method", "algorithm", "seed", "α", "β", "γ", "separation", "accuracy"]
    return pd.DataFrame(rows, columns=names)


def significance_table(chosen: pd.DataFrame, figure: View = "pair_average") -> pd.DataFrame:
    """One row per data set: the best method against the second by a paired bootstrap over the test samples.

    The difference in points, its 95 % interval and p-value hold for these trained models: they are for the chance of
    which samples were tested. Without the predictions of every run there is no test.
    """
    found, _ = entries(chosen)
    rows = []
    for data in dict.fromkeys(entry.data for entry in found):
        of_data = [entry for entry in found if entry.data == data]
        means: dict[str, list[float]] = {}
        for entry in of_data:
            means.setdefault(entry.method, []).append(getattr(tested(entry.results), figure) or 0.0)
        ranked = sorted(means, key=lambda method: -float(np.mean(means[method])))
        if len(ranked) < 2:
            continue
        answers = [_answers([entry for entry in of_data if entry.method == method]) for method in ranked[:2]]
        row: list[Any] = [data, *ranked[:2], 100 * (np.mean(means[ranked[0]]) - np.mean(means[ranked[1]]))]
        first, second = answers
        if first is None or second is None or not np.array_equal(first[1], second[1]):
            rows.append([*row, np.nan, np.nan, np.nan])
            continue
        (correct_a, (y, domain)), (correct_b, _) = first, second
        shape = of_data[0].results[0]["counts"].shape
        difference = paired_difference(
            correct_a, correct_b, y, domain, num_domains=shape[0], num_classes=shape[1], of=figure, resamples=1000
        )
        rows.append([*row, 100 * difference.low, 100 * difference.high, difference.p_value])
    return pd.DataFrame(rows, columns=["data", "best", "second", "difference", "low", "high", "p"])


def _answers(found: Sequence[Entry]) -> tuple[NDArray[np.bool_], NDArray[np.int64]] | None:
    """Which samples each seed gets right (S, N), their class and domain (2, N); None where a run has not kept it."""
    correct, truth = [], []
    for entry in found:
        kept = [RunFolder(folder).load("predictions.pt") for folder in entry.runs.sort_values("unseen")["folder"]]
        if any(part is None for part in kept):
            return None
        joined = {
            k: np.concatenate([np.asarray(part[k], np.int64) for part in kept if part])
            for k in ("predicted", "y", "domain")
        }
        correct.append(joined["predicted"] == joined["y"])
        truth.append(np.stack([joined["y"], joined["domain"]]))
    if any(not np.array_equal(one, truth[0]) for one in truth):
        return None
    return np.stack(correct), truth[0]
