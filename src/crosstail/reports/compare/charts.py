"""Charts of a comparison: each is a table first, and its title states the finding."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr

from crosstail.metrics import SHOTS, find, shot_group
from crosstail.reports.charts import PALETTE, colours, names, palette, tip
from crosstail.reports.compare.method_runs import MethodRun
from crosstail.reports.compare.tables import RANKED, of_metric
from crosstail.reports.document.model import Chart
from crosstail.reports.label_table import label_table
from crosstail.reports.run.tables import STATISTICS, counted_steps, has_learnt
from crosstail.reports.run.trace import MEANING
from crosstail.reports.vega_lite import Options, draw, facet, field, layer
from crosstail.reports.wording import selected_on
from crosstail.training.folder import RunFolder

CORRELATED = 5  # points from which a correlation is worth a number
MODELS = 10  # the same of models, whose seeds and hyperparameters make them differ less
LABELLED = 40  # up to this many classes, each has room for its name
BARS = 150  # per domain at most; of more classes, a bar is the mean of several

LEGEND: dict[str, Any] = {"orient": "top", "labelLimit": 0, "columns": 3, "symbolOpacity": 1}


def shortlist(summary: pd.DataFrame, data: str, baseline: str, number: int = 6) -> list[str]:
    """The methods that a chart has colours for: the baseline, the best of BoDA, and the best of the others."""
    ranked = of_metric(summary, RANKED, data)
    first = [*ranked[ranked["method"] == baseline]["method"], *ranked[ranked["boda"]]["method"][:1]]
    return list(dict.fromkeys([*first, *ranked["method"]]))[:number]


def counts_table(run: MethodRun, bars: int | None = None) -> pd.DataFrame:
    """Training samples and shot group of each pair; of more classes than `bars`, means of as many groups of them."""
    counts, classes = np.asarray(run.counts), list(run.runs[0].classes)
    if bars and len(classes) > bars:
        groups = np.array_split(np.argsort(-counts.sum(0), kind="stable"), bars)
        ends = np.cumsum([len(group) for group in groups])
        classes = [f"{end - len(group) + 1:,} to {end:,}" for group, end in zip(groups, ends, strict=True)]
        counts = np.stack([counts[:, group].mean(1) for group in groups], axis=1)  # (D, groups)
    table = label_table(counts, run.runs[0].domains, classes)
    return table.assign(shot=shot_group(table["count"].round(), *run.runs[0].shots))


def counts_chart(name: str, run: MethodRun) -> Chart:
    """Label distribution of each domain; many classes are without names, from common to rare."""
    table, counts = counts_table(run, BARS), np.asarray(run.counts)
    labelled, classes = counts.shape[1] <= LABELLED, list(dict.fromkeys(table["class"]))
    if LABELLED < len(classes) == counts.shape[1]:
        classes = [run.runs[0].classes[c] for c in np.argsort(-counts.sum(0), kind="stable")]
    what = "class" + ", from common to rare" * (not labelled)
    base = draw(width=max(150, min(12 * len(classes), 240)), height=120).mark("bar")
    panel = base.encode(
        x=names("class", what, classes, labels=labelled, ticks=False, labelLimit=80, labelAngle=angle(classes)),
        y=field("count:Q", title="training samples"),
        color=colours("shot", dict(zip(SHOTS, [*PALETTE[:3], PALETTE[5]], strict=True)), "shots", orient="top"),
        tooltip=["domain:N", "class:N", tip("count", ",.0f"), "shot:N"],
    )
    drawing = facet(panel, table, field("domain:N", title=None, sort=list(dict.fromkeys(table["domain"]))), columns=3)
    known = counts[counts > 0]
    low, high, empty = known.min(), known.max(), counts.size - len(known)
    each = f"pairs have {low:,} to {high:,}" if low < high else f"each pair has {low:,}"
    title = f"{run.data}: {each} training samples" + (f", and {empty:,} of {counts.size:,} have none" if empty else "")
    many, few = run.runs[0].shots
    note = f"Many: more than {many} training samples; medium: {few + 1} to {many}; few: 1 to {few}; zero: none."
    note += f" There are {counts.shape[1]:,} classes: a bar is the mean of several, from common to rare." * (
        counts.shape[1] > BARS
    )
    return Chart(name, title, drawing, "Bars: training samples per class, one panel per domain", note)


def separation_chart(name: str, data: str, table: pd.DataFrame) -> Chart | None:
    """Accuracy against (β + γ) − α over the models of each method, trials included; None where all have too few.

    Distances of other features have another scale, so models of different methods are not correlated with each other.
    """
    findings = {}
    for (method, _), own in sorted(table.groupby(["of", "space"], sort=False), key=lambda group: -len(group[1])):
        if len(own) >= MODELS and (found := correlation(own["separation"], own["accuracy"])):
            r, low, high = found
            verb = "rises with" if low > 0 else "falls with" if high < 0 else "is not clearly related to"
            findings[str(method)] = verb, f"{len(own)} models of {method}", f"r = {r:+.2f}, {low:+.2f} to {high:+.2f}"
    if not findings:
        return None
    scale, drawn = {"zero": False, "padding": 10}, list(findings)[: len(PALETTE)]
    shown = table[table["of"].isin(drawn)]
    points = draw(shown, width="container", height=300).mark("point", filled=True, size=60, opacity=0.75)
    drawing = points.encode(
        x=field("separation:Q", title="(β + γ) − α, distance in feature space", scale=scale),
        y=field("accuracy:Q", title="test pair average, %", scale=scale),
        color=colour("of", drawn),
        tooltip=["of:N", "seed:N", tip("separation", ".2f"), tip("accuracy", ".1f")],
    ).zoom()
    (verb, models, shown_r), *others = findings.values()
    title = f"{data}: over {models}, accuracy {verb} (β + γ) − α ({shown_r})"
    note = "r is Pearson's correlation with its 95 % interval, of models that have the same features and loss."
    if others:
        note += f" Others: {'; '.join(f'{models}: {found}' for _, models, found in others)}."
    return Chart(name, title, drawing, "Points: test accuracy of each model against the separation of classes", note)


def correlation(x: pd.Series, y: pd.Series) -> tuple[float, float, float] | None:
    """Pearson's correlation with its 95 % interval; None with few points or a constant."""
    if len(x) < CORRELATED or x.nunique() < 2 or y.nunique() < 2:
        return None
    found = pearsonr(x, y)
    ends = found.confidence_interval(0.95)
    return float(found.statistic), float(ends.low), float(ends.high)


def transfer_chart(name: str, data: str, table: pd.DataFrame) -> Chart | None:
    """α, β, γ of each method whose features are comparable with those of most others; None without another."""
    space = table.drop_duplicates(["method", "space"])["space"].mode()
    own = table[table["space"] == space[0]] if len(space) else table
    means, left_out = own.groupby("method", sort=False)[["α", "β", "γ"]].mean(), set(table["method"]) - {*own["method"]}
    if len(means) < 2:
        return None
    long = means.reset_index().melt("method", var_name="statistic", value_name="distance")
    ratio = means["α"] / means["γ"]
    order = list(ratio.sort_values().index)
    base = draw(long, width="container", height=20 * len(means)).mark("point", filled=True, size=90, opacity=0.9)
    drawing = base.encode(
        x=field("distance:Q", title="mean distance in feature space"),
        y=names("method", order=order, labelLimit=150),
        color=colour("statistic", ["α", "β", "γ"]),
        shape=field("statistic:N", title=None, scale={"domain": ["α", "β", "γ"]}, legend=LEGEND),
        tooltip=["method:N", "statistic:N", tip("distance", ".2f")],
    )
    title = f"{data}: {order[0]} has the same class closest together across domains (α / γ {ratio[order[0]]:.2f})"
    note = f"{MEANING} Left out, as their features are others: {', '.join(sorted(left_out))}." if left_out else MEANING
    return Chart(name, title, drawing, "Dots: α, β and γ per method", note)


def curve_tables(found: Sequence[MethodRun], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean, min and max of `selected_on` over runs, and mean α, β, γ, by method and steps (`at`) of a trained model."""
    accuracy, distance = [], []
    for method, fold in [(run.method, fold) for run in found if run.method in methods for fold in run.runs]:
        records = RunFolder(fold.folder).records()
        for at, record in zip(counted_steps(records), records, strict=True):
            on = fold.spec.selected_on
            value = (record.averaged or record).validation.value(on)
            if has_learnt(record, records) and value is not None:
                accuracy.append((method, record.stage, at, find(on).scale * value))
            known = {symbol: getattr(record.trace, name, None) for name, symbol in STATISTICS.items()}
            distance += [(method, at, symbol, value) for symbol, value in known.items() if value is not None]
    frame = pd.DataFrame(accuracy, columns=["method", "stage", "at", "value"])
    curves = frame.groupby(["method", "stage", "at"], sort=False)["value"].agg(["mean", "min", "max"]).reset_index()
    trace = pd.DataFrame(distance, columns=["method", "at", "statistic", "distance"])
    return curves, trace.groupby(["method", "at", "statistic"], sort=False)["distance"].mean().reset_index()


def curve_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str], on: str) -> Chart:
    """Learning curves on the validation set, of what was selected `on`."""
    last = table.sort_values(["stage", "at"]).groupby("method")["mean"].last()
    of = find(on)
    best = str((of.sign * last).idxmax())
    metric, unit = selected_on(on), ", %" if of.share else ""
    base = draw(table).encode(x=field("at:Q", title="step"), color=colour("method", methods), detail="stage:O")
    band = base.mark("area", opacity=0.15).encode(y=field("min:Q", scale={"zero": False}), y2="max")
    line = base.mark("line", point=True).encode(
        y=field("mean:Q", title=f"validation {metric}{unit}", scale={"zero": False}),
        tooltip=["method:N", "stage:O", "at:Q", tip("mean", ".1f" if unit else ".3f")],
    )
    drawing = layer(band, line, width="container", height=280)
    title = f"{data}: {best} ends best on validation, at {of.shown(last[best] / of.scale)}"
    note = "Lines are means over the seeds, bands their range; a second line or point is the second stage."
    return Chart(name, title, drawing, f"Lines: validation {metric} over the training steps", note)


def trace_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Chart:
    """α, β, γ over the steps, one panel each, with a line per method."""
    base = draw(width=240, height=200).mark("line", point=True)
    panel = base.encode(
        x=field("at:Q", title="step"),
        y=field("distance:Q", title="mean distance in feature space"),
        color=colour("method", [method for method in methods if method in set(table["method"])]),
        tooltip=["method:N", "at:Q", "statistic:N", tip("distance", ".2f")],
    )
    drawing = facet(panel, table, field("statistic:N", title=None, sort=list(STATISTICS.values())), columns=3)
    last = table.sort_values("at").groupby(["method", "statistic"])["distance"].last().unstack()
    title = f"{data}: distances between pairs during training"
    if {"α", "γ"} <= set(last):
        ratio = last["α"] / last["γ"]
        title = f"{data}: {ratio.idxmin()} brings a class closest together across domains, α / γ {ratio.min():.2f}"
    return Chart(name, title, drawing, "Lines: α, β and γ of each method over the training steps", MEANING)


def angle(labels: Iterable[str]) -> int:
    """Angle of the labels below an axis: flat if they are short."""
    return 0 if max(map(len, labels)) <= 2 else -90


def colour(name: str, order: Sequence[str]) -> Options:
    """A colour for each name in this order, grey for "others"."""
    return colours(name, palette(order), **LEGEND)
