"""The transferability graph as a page that explains it: what is close, what is not, and what the numbers mean."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from crosstail.reports.document.model import Block, Chart, Document, Heading, Table, Text, bullets
from crosstail.reports.graph_chart import NamedGraph
from crosstail.reports.run.tables import DISTANCES, ESTIMATED
from crosstail.reports.wording import number, sentence, several, shown_statistics
from crosstail.transfer import TransferabilityGraph

LISTED = 10  # pairs of a table
GOOD, POOR = 1 / 3, 2 / 3  # of the way from a pair's own samples to other classes; a rule of thumb
WHAT = (
    "A pair is one class in one domain. The model turns every training sample into a feature vector; the distance from "
    "one pair to another is the mean distance of its features to the other's centre. Where the same class is close in "
    "two domains, what is learned in one carries over to the other, which is how a pair with few samples borrows from "
    "pairs with many."
)
LIMITS = (
    "The picture has two dimensions and the features many, so distances in it are approximate: trust the numbers more.",
    "Only training samples are drawn. Features that are close in training may be further apart on new samples.",
    "Distances have no unit: compare them within a model, or as the ratio α / γ between models.",
)
PART = "Only {:,} of {:,} pairs are drawn and listed, for random classes. α, β and γ cover all."


def neighbours(model: NamedGraph) -> pd.DataFrame:
    """One row per pair that has its class in another domain: the closest pair of another domain.

    Columns pair, samples, closest, distance, own (distance to its class in the other domains, the closest), and whether
    the closest pair is of the same class.
    """
    graph = model.graph
    domain, label = graph.pairs.T
    names = [f"{model.domains[d]} / {model.classes[c]}" for d, c in graph.pairs]
    rows = []
    for i, distances in enumerate(graph.matrix):
        away = np.where(domain != domain[i], distances, np.inf)
        own = np.where(label == label[i], away, np.inf)
        if np.isfinite(own.min()):
            j = int(away.argmin())
            count = int(graph.counts[tuple(graph.pairs[i])])
            rows.append((names[i], count, names[j], float(away[j]), float(own.min()), bool(label[j] == label[i])))
    return pd.DataFrame(rows, columns=["pair", "samples", "closest", "distance", "own", "same"])


def graph_document(title: str, models: Sequence[NamedGraph], chart: Chart) -> Document:
    """The page of one model, or of two side by side."""
    return Document(title, list(_blocks(models, chart)))


def _blocks(models: Sequence[NamedGraph], chart: Chart) -> Iterator[Block]:
    shown = [(model, f"{model.name}: " * (len(models) > 1), neighbours(model)) for model in models]
    said = ((who, verdict(model.graph)) for model, who, _ in shown)
    verdicts = (f"{who}{text}" if who else sentence(text) for who, text in said if text)
    yield Text(" ".join([*(_finding(*one) for one in shown), *verdicts]), lead=True)

    yield Heading("The pairs in the plane")
    yield Text(WHAT)
    yield chart
    some = [model.graph for model in models if model.graph.estimate]
    yield bullets([*LIMITS, *(PART.format(len(of.pairs), np.count_nonzero(of.counts)) for of in some)])
    yield Heading("Pairs that are closest to another class")
    yield from (_confusable(who, table) for _, who, table in shown)
    yield Heading("α, β and γ")
    yield Text(
        "Mean distances over all pairs of a kind. A model that transfers between domains has a small α compared with β "
        "and γ: α / γ = 1 means that the same class in another domain is as far away as any other class there. In many "
        "dimensions, most of each distance is the spread δ within a pair, so α / γ is close to 1 also for good models."
    )
    names = [model.name for model in models] if len(models) > 1 else ["distance"]
    statistics = zip(*(shown_statistics(model.graph) for model in models), strict=True)
    rows = [[symbol, *values, meaning] for (symbol, meaning), values in zip(DISTANCES.items(), statistics, strict=True)]
    spread = [number(_spread(model.graph), 2) for model in models]
    rows.append(["δ", *spread, "a pair and its own samples: as close as the others could come"])
    rows.append(["α / γ", *(number(_ratio(model), 2) for model in models), "small is good"])
    note = ESTIMATED if any(model.graph.estimate for model in models) else ""
    yield Table(header=["", *names, "between"], rows=rows, words_last=True, note=note)


def _ratio(model: NamedGraph) -> float:
    found = model.graph.statistics
    return found.alpha / found.gamma if found.gamma else math.nan  # 0 if all features are equal


def _spread(graph: TransferabilityGraph) -> float:
    """δ: the mean distance of a pair's samples to its own centre, which no other distance is much below."""
    return float(np.diagonal(graph.matrix).mean())


def _way(graph: TransferabilityGraph) -> float:
    """Where α is between δ (0) and γ (1); NaN without a class in two domains, or where all pairs are the same."""
    near, (alpha, _, gamma) = _spread(graph), graph.statistics
    return max(0.0, (alpha - near) / (gamma - near)) if gamma > near else math.nan


def verdict(graph: TransferabilityGraph) -> str:
    """What α says: distances of samples are mostly spread within a pair, so α / γ alone is never far below 1."""
    share = _way(graph)
    if math.isnan(share):
        return ""
    much = "classes transfer well" if share < GOOD else "little transfers" if share >= POOR else "they transfer in part"
    way = f"{100 * share:.0f} % of the way from a pair's own samples to other classes there"
    return f"the same class in another domain is {way}: {much}."


def _finding(model: NamedGraph, who: str, table: pd.DataFrame) -> str:
    if table.empty:
        return f"{model.name}: no class occurs in two domains, so nothing can transfer between them."
    same = int(table["same"].sum())
    return (
        f"{who}{'for' if who else 'For'} {same} of {several(len(table), 'pair')}, the closest pair of another domain "
        f"is of the same class{'' if same == len(table) else f'; {len(table) - same:,} are closer to another class'}."
    )


def _confusable(who: str, table: pd.DataFrame) -> Block:
    wrong = table[~table["same"].astype(bool)].assign(excess=lambda t: t["own"] / t["distance"])
    if wrong.empty:
        return Text(f"{who}none." if who else "None: every pair is closest to its own class.")
    worst = wrong.sort_values("excess", ascending=False, kind="stable").head(LISTED)
    rows = [
        [row["pair"], f"{row['samples']:,}", row["closest"], number(row["distance"], 2), number(row["own"], 2)]
        for row in worst.to_dict("records")
    ]
    header = ["pair", "training samples", "closest in another domain", "at", "own class at"]
    rest = len(wrong) - len(rows)
    more = f" {rest:,} more are not listed." if rest > 0 else ""
    note = f"Farthest from their own class first, relative to the closest.{more} More samples of these pairs may help."
    return Table(title=f"{who}{several(len(wrong), 'pair')}" if who else "", header=header, rows=rows, note=note)
