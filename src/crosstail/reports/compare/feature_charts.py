"""Charts from the features of a trained model: its graph, and the distance between training and test features."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from crosstail.data import shot_thresholds
from crosstail.losses import boda_loss
from crosstail.metrics import shot_group
from crosstail.pairs import pair_number
from crosstail.progress import Progress
from crosstail.reports.charts import INK, PALETTE, colours, tip
from crosstail.reports.compare.charts import LABELLED, angle, correlation
from crosstail.reports.document.model import Chart
from crosstail.reports.graph_chart import NamedGraph, side_by_side
from crosstail.reports.vega_lite import Drawing, draw, facet, field, layer
from crosstail.training.evaluation import features, graph_of
from crosstail.training.existing import naming_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_data, load_model
from crosstail.transfer import PairStatistics, TransferabilityGraph, boda_lower_bound


@dataclass(frozen=True)
class ModelFeatures:
    """Features `z`, class `y` and domain of a run's samples by split, and the graph of the training samples."""

    name: str
    z: dict[str, NDArray[np.float32]]
    y: dict[str, NDArray[np.int64]]
    domain: dict[str, NDArray[np.int64]]
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    shots: tuple[int, int]
    graph: TransferabilityGraph

    def by_pair(self, split: str) -> dict[tuple[int, int], NDArray[np.float64]]:
        """The features (n, F) of each pair that has samples."""
        pair = pair_number(self.y[split], self.domain[split], len(self.classes))
        order = np.argsort(pair, kind="stable")
        present, starts = np.unique(pair[order], return_index=True)
        groups = np.split(self.z[split][order].astype(np.float64), starts[1:])
        return {divmod(int(p), len(self.classes)): z for p, z in zip(present, groups, strict=True)}


def model_features(run: Path, trust: bool = False, progress: Progress | None = None) -> ModelFeatures:
    """Load the data and the model of a run and embed both splits."""
    folder = RunFolder(run)
    spec = folder.spec()
    with naming_run(run):
        dataset = load_data(folder, trust).embedded(progress)
        model = load_model(folder, dataset, trust)
    rows = {split: dataset.rows(split) for split in ("train", "test")}
    return ModelFeatures(
        spec.method,
        {split: features(model, dataset, own) for split, own in rows.items()},
        {split: dataset.y[own] for split, own in rows.items()},
        {split: dataset.domain[own] for split, own in rows.items()},
        dataset.domains,
        dataset.classes,
        shot_thresholds(spec.dataset),
        graph_of(model, dataset),
    )


def distance_table(model: ModelFeatures) -> pd.DataFrame:
    """One row per pair with training and test samples, and domain that has its class: how far apart their features are.

    `mean` and `covariance` are the distances (Euclidean, Frobenius) of the pair's test features from the training
    features of its class in the `other` domain, which may be its own. A covariance needs two samples.
    """
    train = {pair: (len(z), *_moments(z)) for pair, z in model.by_pair("train").items()}
    rows = []
    for (d, c), z in model.by_pair("test").items():
        mean, covariance = _moments(z)
        for e, other in enumerate(model.domains):
            if (d, c) in train and (e, c) in train:
                samples, center, spread = train[e, c]
                apart = np.linalg.norm(mean - center), np.linalg.norm(covariance - spread)
                rows.append((model.domains[d], model.classes[c], other, train[d, c][0], samples, *apart))
    return pd.DataFrame(rows, columns=["domain", "class", "other", "count", "other_count", "mean", "covariance"])


def _moments(z: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return z.mean(axis=0), np.asarray(np.cov(z, rowvar=False) if len(z) > 1 else np.nan)


def discrepancy_table(model: ModelFeatures) -> pd.DataFrame:
    """One row per pair with training and test samples: the distance of its test features from training features.

    `mean` and `covariance` are distances to the training samples of the same pair; `other_mean` and `other_covariance`
    are mean distances to the same class in other domains.
    """
    table, keys = distance_table(model), ["domain", "class", "count"]
    same = table["domain"] == table["other"]
    others = table[~same].groupby(keys)[["mean", "covariance"]].mean().add_prefix("other_").reset_index()
    found = table[same].merge(others, how="left", on=keys)
    found = found[[*keys, "mean", "other_mean", "covariance", "other_covariance"]]
    return found.assign(shot=shot_group(found["count"], *model.shots))


def ratio_table(model: ModelFeatures) -> pd.DataFrame:
    """One row per class and ordered pair of domains (d, d′): a ratio of counts and a ratio of distances.

    `counts` is N[d′, c] / N[d, c]; `distances` is the distance of the test mean of (d, c) from the training mean of
    (d, c), divided by its distance from the training mean of (d′, c).
    """
    table = distance_table(model)
    own = table[table["domain"] == table["other"]][["domain", "class", "mean"]]
    pairs = table[table["domain"] != table["other"]].merge(own, on=["domain", "class"], suffixes=("", "_own"))
    ratios = {"counts": pairs["other_count"] / pairs["count"], "distances": pairs["mean_own"] / pairs["mean"]}
    return pairs[["class", "domain", "other"]].assign(**ratios)


def bound_table(models: Sequence[ModelFeatures], nus: Sequence[float] = (0.0, 1.0)) -> pd.DataFrame:
    """One row per model and ν: the BoDA loss of the training set per sample, and its theoretical lower bound."""
    rows = []
    for model in models:
        graph, counts = model.graph, model.graph.counts
        if (counts == 0).any() or min(counts.shape) < 2:
            continue
        z, y, domain = (torch.from_numpy(part["train"]) for part in (model.z, model.y, model.domain))
        statistics = PairStatistics(counts.shape[0], counts.shape[1], z.shape[1])
        statistics.update(z, y, domain)
        for nu in nus:
            loss = boda_loss(z, y, domain, statistics.mean, torch.from_numpy(counts), nu=nu, reduction="sum")
            least = boda_lower_bound(graph.calibrated_statistics(nu=nu), counts)
            rows.append((model.name, nu, float(loss) / counts.sum(), least / counts.sum()))
    return pd.DataFrame(rows, columns=["method", "ν", "empirical", "theoretical"])


def feature_charts(models: Sequence[ModelFeatures]) -> list[Chart]:
    """All graphs side by side; for each model its discrepancies and ratios."""
    kinds = {"discrepancy": _discrepancy, "ratio": _ratio}
    own = [draw(f"{kind}-{i}", model) for i, model in enumerate(models) for kind, draw in kinds.items()]
    graphs = (NamedGraph(model.name, model.graph, model.domains, model.classes) for model in models)
    return [side_by_side(*graphs), *own]


def _discrepancy(name: str, model: ModelFeatures) -> Chart:
    table = discrepancy_table(model)
    long = table.melt(["domain", "class", "count", "shot"], var_name="distance", value_name="value")
    long["order"] = long["distance"].str.removeprefix("other_")
    sides = ["same pair", "other domains"]
    long["training"] = np.where(long["order"] == long["distance"], *sides)
    source, dashes = "training samples of", {"domain": sides, "range": [[1, 0], [5, 4]]}
    shots = {"domain": ["many", "medium", "few"], "range": [PALETTE[0], INK, PALETTE[5]]}
    legend = {"orient": "bottom", "symbolOpacity": 0.4}
    background = field("shot:N", title="shots (background)", scale=shots, legend=legend)
    rows = []
    for order in ("mean", "covariance"):
        part = long[long["order"] == order]
        classes = list(dict.fromkeys(part["class"]))
        axis = {"labels": len(classes) <= LABELLED, "labelAngle": angle(classes)}
        base = draw().encode(x=field("class:N", title="class", sort=list(model.classes), axis=axis))
        shade = base.mark("rect", opacity=0.12).encode(fill=background)
        line = base.mark("line", point=True).encode(
            y=field("value:Q", title=f"distance of {order}s"),
            color=colours("training", dict(zip(sides, PALETTE[1:4:2], strict=True)), source, orient="bottom"),
            strokeDash=field("training:N", title=source, scale=dashes, legend={"orient": "bottom"}),
            tooltip=["domain:N", "class:N", "count:Q", "training:N", tip("value", ".2f")],
        )
        panel = layer(shade, line, width=max(150, min(14 * len(classes), 300)), height=130)
        by = {"column": field("domain:N", title=None, sort=list(model.domains))}
        rows.append(facet(panel, part, by))
    few = table["shot"] == "few"
    title = f"{model.name}: distance of test features from training features, by class and domain"
    if few.any() and not few.all():
        ratio = table[few]["mean"].mean() / table[~few]["mean"].mean()
        title = f"{model.name}: few-shot pairs have test features {ratio:.1f} times as far from training as others"
    alternative = "Lines: distance between training and test features per class and domain, of means and covariances"
    return Chart(name, title, Drawing({"vconcat": rows}), alternative)


def _ratio(name: str, model: ModelFeatures) -> Chart:
    table = ratio_table(model)
    found = correlation(np.log(table["counts"]), np.log(table["distances"]))
    log = {"scale": {"type": "log", "nice": False, "padding": 10}, "axis": {"grid": False}}
    points = draw(table, width="container", height=300).mark("point", filled=True, opacity=0.6, color=PALETTE[0])
    drawing = points.encode(
        x=field("counts:Q", title="training samples, other domain / own", **log),
        y=field("distances:Q", title="distance to training, own / other domain", **log),
        tooltip=["class:N", "domain:N", "other:N", "counts:Q", tip("distances", ".2f")],
    ).zoom()
    finding = "too few ratios of counts that differ to compare them with distances"
    if found:
        r, low, high = found
        verb = "are" if low > 0 else "are not clearly"
        finding = f"test features {verb} closer to domains with more samples of the class (log-log r = {r:+.2f}, "
        finding += f"{low:+.2f} to {high:+.2f})"
    alternative = "Points: ratio of distances against ratio of counts, per class and two domains"
    return Chart(name, f"{model.name}: {finding}", drawing, alternative)
