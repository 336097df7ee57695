"""Figures that need the features of a trained model: its transferability graph, and how far test is from training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from crosstail import protocols
from crosstail.data import shot_thresholds
from crosstail.losses import boda_loss
from crosstail.metrics import shot_group
from crosstail.report.charts import INK, PALETTE
from crosstail.report.compare.charts import LABELLED, Figure, angle, correlation
from crosstail.report.compare.two_graphs import Model, side_by_side
from crosstail.report.graph_chart import graph_chart
from crosstail.training.evaluation import features, graph_of
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model
from crosstail.training.progress import Progress
from crosstail.transfer import PairStatistics, TransferabilityGraph, boda_lower_bound

MATRIX = 150  # pairs up to which every edge has a cell


@dataclass(frozen=True)
class Seen:
    """What a model makes of its training and test samples: `z`, `y`, `domain` by split, and the graph of training."""

    name: str
    z: dict[str, NDArray[np.float32]]
    y: dict[str, NDArray[np.int64]]
    domain: dict[str, NDArray[np.int64]]
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    shots: tuple[int, int]
    graph: TransferabilityGraph


def see(run: Path, trust: bool = False, progress: Progress | None = None) -> Seen:
    """Load the data and the model of a run and embed both splits."""
    folder = RunFolder(run)
    spec = folder.spec()
    dataset = protocols.inputs(spec, progress)
    model = load_model(folder, dataset, trust)
    rows = {split: dataset.rows(split) for split in ("train", "test")}
    return Seen(
        spec.algorithm + ", decoupled" * spec.decouple,
        {split: features(model, dataset, own) for split, own in rows.items()},
        {split: dataset.y[own] for split, own in rows.items()},
        {split: dataset.domain[own] for split, own in rows.items()},
        dataset.domains,
        dataset.classes,
        shot_thresholds(spec.dataset),
        graph_of(model, dataset),
    )


def _parts(seen: Seen, split: str) -> dict[tuple[int, int], NDArray[np.float64]]:
    """The features (n, F) of every pair that has samples, by domain and class."""
    pair = seen.domain[split] * len(seen.classes) + seen.y[split]
    order = np.argsort(pair, kind="stable")
    present, starts = np.unique(pair[order], return_index=True)
    groups = np.split(seen.z[split][order].astype(np.float64), starts[1:])
    return {divmod(int(p), len(seen.classes)): z for p, z in zip(present, groups, strict=True)}


def discrepancy_table(seen: Seen) -> pd.DataFrame:
    """One row per pair with training and test samples: how far the test features are from training.

    `mean` and `covariance` are the distances (Euclidean, Frobenius) of the two sets of its own pair, `other_mean` and
    `other_covariance` the means of those to the same class in the other domains. A covariance needs two samples.
    """
    train, test = _parts(seen, "train"), _parts(seen, "test")
    spread = {pair: np.cov(z, rowvar=False) for pair, z in train.items() if len(z) > 1}
    rows = []
    for (d, c), z in test.items():
        if (d, c) not in train:
            continue
        same_class = [e for e in range(len(seen.domains)) if (e, c) in train]
        first = {e: float(np.linalg.norm(z.mean(axis=0) - train[e, c].mean(axis=0))) for e in same_class}
        second = {}
        if len(z) > 1:
            own = np.cov(z, rowvar=False)
            second = {e: float(np.linalg.norm(own - spread[e, c])) for e in same_class if (e, c) in spread}
        row = [seen.domains[d], seen.classes[c], len(train[d, c])]
        for found in (first, second):
            others = [value for e, value in found.items() if e != d]
            row += [found.get(d, np.nan), float(np.mean(others)) if others else np.nan]
        rows.append(row)
    names = ["domain", "class", "count", "mean", "other_mean", "covariance", "other_covariance"]
    table = pd.DataFrame(rows, columns=names)
    table["shot"] = shot_group(table["count"], *seen.shots)
    return table


def ratio_table(seen: Seen) -> pd.DataFrame:
    """One row per class and two domains: N′ / N, and how much nearer the test samples are to N′ than to their own.

    The ratio of distances is that of the test mean of (d, c) to its own training mean over that to the one of (d′, c).
    """
    train, test = _parts(seen, "train"), _parts(seen, "test")
    rows = []
    for (d, c), z in test.items():
        for e in range(len(seen.domains)):
            if e != d and (d, c) in train and (e, c) in train:
                near, far = (np.linalg.norm(z.mean(axis=0) - train[f, c].mean(axis=0)) for f in (d, e))
                ratio = len(train[e, c]) / len(train[d, c])
                rows.append((seen.classes[c], seen.domains[d], seen.domains[e], ratio, float(near / far)))
    return pd.DataFrame(rows, columns=["class", "domain", "other", "counts", "distances"])


def bound_table(seen: Sequence[Seen], nus: Sequence[float] = (0.0, 1.0)) -> pd.DataFrame:
    """One row per model and ν: the BoDA loss of the whole training set per sample, and the least it can be."""
    rows = []
    for one in seen:
        graph, counts = one.graph, one.graph.counts
        if (counts == 0).any() or min(counts.shape) < 2:
            continue
        z, y, domain = (torch.from_numpy(part["train"]) for part in (one.z, one.y, one.domain))
        statistics = PairStatistics(counts.shape[0], counts.shape[1], z.shape[1])
        statistics.update(z, y, domain)
        for nu in nus:
            loss = boda_loss(z, y, domain, statistics.mean, torch.from_numpy(counts), nu=nu, reduction="sum")
            least = boda_lower_bound(graph.calibrated_statistics(nu=nu), counts)
            rows.append((one.name, nu, float(loss) / counts.sum(), least / counts.sum()))
    return pd.DataFrame(rows, columns=["method", "ν", "empirical", "theoretical"])


def feature_figures(seen: Sequence[Seen]) -> list[Figure]:
    """For each model its matrix, discrepancies and ratios; all graphs side by side."""
    made = [_graphs(seen)]
    for i, one in enumerate(seen):
        made += [_matrix(f"matrix-{i}", one), _discrepancy(f"discrepancy-{i}", one), _ratio(f"ratio-{i}", one)]
    return made


def _graphs(seen: Sequence[Seen]) -> Figure:
    if len(seen) == 2:
        models = (Model(one.name, one.graph, one.domains, one.classes) for one in seen)
        return replace(side_by_side(*models), name="graphs")
    ratios = [one.graph.statistics.alpha / one.graph.statistics.gamma for one in seen]
    charts = [graph_chart(one.graph.nodes(one.domains, one.classes), one.name) for one in seen]
    chart = alt.concat(*charts, columns=2).resolve_scale(size="independent") if len(charts) > 1 else charts[0]
    words = ", ".join(f"{ratio:.2f} ({one.name})" for one, ratio in zip(seen, ratios, strict=True))
    note = (
        "Each mark is a pair: near marks transfer well. Click a mark to see the links of its class, type to find "
        "pairs, turn the wheel to zoom."
    )
    title = f"The same class in two domains is {words} times as far apart as different classes are (α / γ)"
    return Figure("graphs", title, chart, "Scatter plots: the pairs of each model in two dimensions", note)


def matrix_table(seen: Seen) -> pd.DataFrame:
    """One row per edge; with too many pairs to draw, one per two domains and same or other class, as means."""
    frame = seen.graph.to_frame(seen.domains, seen.classes)
    if len(seen.graph.pairs) <= MATRIX:
        names = [frame[f"{end}_domain"] + " / " + frame[f"{end}_class"] for end in ("from", "to")]
        return pd.DataFrame({"from": names[0], "to": names[1], "distance": frame["transferability"]})
    same = (frame["from_class"] == frame["to_class"]).map({True: ", same class", False: ", other class"})
    ends = {"from": frame["from_domain"], "to": frame["to_domain"] + same, "distance": frame["transferability"]}
    return pd.DataFrame(ends).groupby(["from", "to"], sort=False)["distance"].mean().reset_index()


def _matrix(name: str, seen: Seen) -> Figure:
    table = matrix_table(seen)
    near, far = seen.graph.statistics.alpha, seen.graph.statistics.gamma
    size = int(np.clip(12 * table["from"].nunique(), 160, 640))
    axis = alt.Axis(labelLimit=110, labelFontSize=8)
    chart = (
        alt.Chart(table.assign(distance=table["distance"].round(3)), width=size, height=size)
        .mark_rect()
        .encode(
            x=alt.X("to:N", title="to pair", sort=None, axis=axis),
            y=alt.Y("from:N", title="from pair", sort=None, axis=axis),
            color=alt.Color("distance:Q", title="distance", scale=alt.Scale(scheme="viridis", reverse=True)),
            tooltip=["from:N", "to:N", alt.Tooltip("distance:Q", format=".2f")],
        )
    )
    title = f"{seen.name}: pairs of the same class are {near:.2f} apart, pairs that share nothing {far:.2f}"
    return Figure(name, title, chart, "Heat map: transferability between every two pairs")


def _discrepancy(name: str, seen: Seen) -> Figure:
    table = discrepancy_table(seen)
    rare = table[table["shot"] == "few"]["mean"].mean() / table[table["shot"] != "few"]["mean"].mean()
    long = table.melt(["domain", "class", "count", "shot"], var_name="distance", value_name="value")
    long["order"] = long["distance"].str.removeprefix("other_")
    sides = ["same pair", "other domains"]
    long["training"] = np.where(long["distance"].str.startswith("other_"), *reversed(sides))
    rows = []
    for order in ("mean", "covariance"):
        part = long[long["order"] == order]
        classes = list(dict.fromkeys(part["class"]))
        base = alt.Chart(part, width=max(150, min(14 * len(classes), 300)), height=130).encode(
            x=alt.X(
                "class:N",
                title="class",
                sort=list(seen.classes),
                axis=alt.Axis(labels=len(classes) <= LABELLED, labelAngle=angle(classes)),
            )
        )
        shade = base.mark_rect(opacity=0.12).encode(
            fill=alt.Fill(
                "shot:N",
                title="shots (background)",
                scale=alt.Scale(domain=["many", "medium", "few"], range=[PALETTE[0], INK, PALETTE[5]]),
                legend=alt.Legend(orient="bottom", symbolOpacity=0.4),
            )
        )
        line = base.mark_line(point=True).encode(
            y=alt.Y("value:Q", title=f"distance of {order}s"),
            color=alt.Color(
                "training:N",
                title="training samples of",
                scale=alt.Scale(domain=sides, range=[PALETTE[1], PALETTE[3]]),
                legend=alt.Legend(orient="bottom"),
            ),
            strokeDash=alt.StrokeDash(
                "training:N",
                title="training samples of",
                scale=alt.Scale(domain=sides, range=[[1, 0], [5, 4]]),
                legend=alt.Legend(orient="bottom"),
            ),
            tooltip=["domain:N", "class:N", "count:Q", "training:N", alt.Tooltip("value:Q", format=".2f")],
        )
        rows.append((shade + line).facet(column=alt.Column("domain:N", title=None, sort=list(seen.domains))))
    title = f"{seen.name}: test features lie {rare:.1f} times as far from training for few-shot pairs as for others"
    alternative = "Lines: distance between training and test features per class and domain, of means and covariances"
    return Figure(name, title, alt.vconcat(*rows), alternative)


def _ratio(name: str, seen: Seen) -> Figure:
    table = ratio_table(seen)
    r = correlation(np.log(table["counts"]), np.log(table["distances"]))
    scale, axis = alt.Scale(type="log", nice=False, padding=10), alt.Axis(grid=False)
    chart = (
        alt.Chart(table, width="container", height=300)
        .mark_point(filled=True, opacity=0.6, color=PALETTE[0])
        .encode(
            x=alt.X("counts:Q", title="training samples, other domain / own", scale=scale, axis=axis),
            y=alt.Y("distances:Q", title="distance to training, own / other domain", scale=scale, axis=axis),
            tooltip=["class:N", "domain:N", "other:N", "counts:Q", alt.Tooltip("distances:Q", format=".2f")],
        )
        .interactive()
    )
    verb = "lies nearer" if r > 0.2 else "does not lie nearer"
    title = f"{seen.name}: test data {verb} to a domain that has more of the class (r = {r:+.2f} of the logarithms)"
    if np.isnan(r):
        title = f"{seen.name}: every class has as many samples in one domain as in another, so nothing can be compared"
    return Figure(name, title, chart, "Points: ratio of distances against ratio of counts, per class and two domains")
