"""Charts of a comparison: each is a table first, and its title states the finding."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.metrics import SHOTS, shot_group
from crosstail.report.charts import INK, PALETTE, colours, diverging, names, numbers, palette, search, shades, tip
from crosstail.report.compare.method_runs import MethodRun
from crosstail.report.compare.tables import RANKED, of_metric
from crosstail.report.document.model import Chart
from crosstail.report.run.tables import STATISTICS
from crosstail.report.run.trace import MEANING
from crosstail.report.tables import label_table
from crosstail.training.folder import RunFolder
from crosstail.training.result import counted_steps, has_learnt

LABELLED = 40  # up to this many classes, each has room for its name
LEGEND: dict[str, Any] = {"orient": "top", "labelLimit": 0, "columns": 3, "symbolOpacity": 1}


def shortlist(summary: pd.DataFrame, data: str, baseline: str, number: int = 6) -> list[str]:
    """The methods that a chart has colours for: the baseline, the best of BoDA, and the best of the others."""
    ranked = of_metric(summary, RANKED, data)
    first = [*ranked[ranked["method"] == baseline]["method"], *ranked[ranked["boda"]]["method"][:1]]
    return list(dict.fromkeys([*first, *ranked["method"]]))[:number]


def counts_table(run: MethodRun) -> pd.DataFrame:
    """Training samples and shot group of each pair."""
    first = run.folds[0]
    table = label_table(run.counts, first.domains, first.classes)
    table["shot"] = shot_group(table["count"], *shot_thresholds(first.spec.dataset))
    return table


def counts_chart(name: str, run: MethodRun) -> Chart:
    """Label distribution of each domain."""
    table = counts_table(run)
    classes = list(dict.fromkeys(table["class"]))
    labelled = len(classes) <= LABELLED
    if not labelled:
        classes = list(table.groupby("class")["count"].sum().sort_values(ascending=False, kind="stable").index)
    axis = alt.Axis(labels=labelled, ticks=False, labelLimit=80, labelAngle=angle(classes))
    base = alt.Chart(table, width=max(150, min(12 * len(classes), 300)), height=120).mark_bar()
    drawing = base.encode(
        x=alt.X("class:N", title="class" + ", from common to rare" * (not labelled), sort=classes, axis=axis),
        y=alt.Y("count:Q", title="training samples"),
        color=colours("shot", dict(zip(SHOTS, [*PALETTE[:3], PALETTE[5]], strict=True)), "shots", orient="top"),
        tooltip=["domain:N", "class:N", "count:Q", "shot:N"],
    ).facet(facet=alt.Facet("domain:N", title=None, sort=list(dict.fromkeys(table["domain"]))), columns=3)
    known = table["count"][table["count"] > 0]
    low, high, empty = known.min(), known.max(), len(table) - len(known)
    each = f"pairs have {low:,} to {high:,}" if low < high else f"each pair has {low:,}"
    title = f"{run.data}: {each} training samples" + (f", and {empty} of {len(table)} have none" if empty else "")
    many, few = shot_thresholds(run.folds[0].spec.dataset)
    note = f"Many: more than {many} training samples; medium: {few + 1} to {many}; few: 1 to {few}; zero: none."
    return Chart(name, title, drawing, "Bars: training samples per class, one panel per domain", note)


def gain_table(found: Sequence[MethodRun], baseline: str) -> pd.DataFrame:
    """One row per pair: count, shots, and each method's gain in test accuracy over the baseline, mean over seeds."""
    accuracy: dict[str, list[np.ndarray]] = {}
    for run in found:
        accuracy.setdefault(run.method, []).append(run.accuracy.matrix)
    base = np.mean(accuracy.pop(baseline), axis=0)
    table = counts_table(found[0])
    for method, matrices in accuracy.items():
        table[method] = (100 * (np.mean(matrices, axis=0) - base)).round(2).ravel()
    return table


def gain_chart(name: str, data: str, table: pd.DataFrame, baseline: str, shown: str) -> Chart:
    """Gain of a method over the baseline for each pair; a menu selects other methods."""
    methods = list(table.columns[4:])
    gains = table[shown].dropna()
    compact = table.rename(columns={method: f"g{i}" for i, method in enumerate(methods)})
    choices = alt.binding_select(options=list(range(len(methods))), labels=methods, name="method ")
    menu = alt.param(name=f"method_{name.replace('-', '_')}", value=methods.index(shown), bind=choices)
    base = alt.Chart(compact).transform_calculate(gain=f"datum['g' + {menu.name}]").add_params(menu)
    base = base.encode(tooltip=["domain:N", "class:N", "count:Q", tip("gain", "+.1f", "gain, points")])
    reach = max(float(table[methods].abs().max().max()), 1.0)
    few_classes = table["class"].nunique() <= LABELLED
    drawing = _gain_heat_map(base, table, reach) if few_classes else _gain_points(base, table)
    rare = table[table["shot"].isin(["few", "zero"])][shown].mean()
    title = f"{data}: {shown} gains over {baseline} on {int((gains > 0).sum())} of {len(gains)} pairs"
    title += f" and loses on {int((gains < 0).sum())}"
    title += "" if np.isnan(rare) else f"; few- and zero-shot pairs change by {rare:+.1f} points on average"
    return Chart(name, title, drawing, f"Gain in test accuracy over {baseline} per domain and class")


def _gain_heat_map(base: alt.Chart, table: pd.DataFrame, reach: float) -> alt.LayerChart:
    across, down = "class", "domain"
    if table["domain"].nunique() > table["class"].nunique():
        across, down = down, across
    base = base.encode(
        x=names(alt.X, across, title=across, labelLimit=90, labelAngle=angle(table[across])),
        y=names(alt.Y, down, labelLimit=90),
    ).properties(width="container", height=34 * table[down].nunique())
    cells = base.mark_rect().encode(color=shades("gain", "gain, points", diverging(reach)))
    return cells + numbers(base, "gain", "+.0f", f"abs(datum.gain) > {0.6 * reach}")


def _gain_points(base: alt.Chart, table: pd.DataFrame) -> alt.LayerChart:
    """Too many pairs for cells: one mark each, to search and to zoom."""
    field, match = search("find")
    scale = alt.Scale(type="log", nice=False, padding=10)
    domains = palette(dict.fromkeys(table["domain"]))
    base = base.transform_calculate(samples="max(datum.count, 0.5)").mark_point(filled=True, size=40)
    marks = base.encode(
        x=alt.X("samples:Q", title="training samples (none at the left)", scale=scale),
        y=alt.Y("gain:Q", title="gain, points"),
        color=colours("domain", domains, "domain", orient="top", columns=3),
        opacity=alt.condition(match, alt.value(0.7), alt.value(0.03)),
    )
    zero = alt.Chart(pd.DataFrame({"y": [0]})).mark_rule(color=INK).encode(y="y:Q")
    return (zero + marks.add_params(field).interactive()).properties(width="container", height=360)


def separation_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Chart:
    """Accuracy against (β + γ) − α over all models, including the trials of a search."""
    r = correlation(table["separation"], table["accuracy"])
    shown = table.assign(method=table["method"].where(table["method"].isin(methods), "others"))
    order = [*methods, *["others"] * bool((shown["method"] == "others").any())]
    scale = alt.Scale(zero=False, padding=10)
    points = alt.Chart(shown, width="container", height=300).mark_point(filled=True, size=60, opacity=0.75)
    drawing = points.encode(
        x=alt.X("separation:Q", title="(β + γ) − α, distance in feature space", scale=scale),
        y=alt.Y("accuracy:Q", title="test pair average, %", scale=scale),
        color=colour("method", order),
        tooltip=["method:N", "seed:N", tip("separation", ".2f"), tip("accuracy", ".1f")],
    ).interactive()
    verb = "rises with" if r > 0.5 else "falls with" if r < -0.5 else "is hardly related to"
    title = f"{data}: over {len(table)} models, accuracy {verb} (β + γ) − α"
    title += "" if np.isnan(r) else f" (r = {r:+.2f})"
    return Chart(name, title, drawing, "Points: test accuracy of each model against the separation of classes")


def correlation(x: pd.Series, y: pd.Series) -> float:
    """Pearson's correlation, or NaN with too few points or a constant."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and x.nunique() > 1 < y.nunique() else float("nan")


def transfer_chart(name: str, data: str, table: pd.DataFrame) -> Chart:
    """α, β, γ of each method."""
    means = table.groupby("method", sort=False)[["α", "β", "γ"]].mean()
    long = means.reset_index().melt("method", var_name="statistic", value_name="distance")
    ratio = means["α"] / means["γ"]
    order = list(ratio.sort_values().index)
    symbols = alt.Scale(domain=["α", "β", "γ"])
    base = alt.Chart(long, width="container", height=20 * len(means)).mark_point(filled=True, size=90, opacity=0.9)
    drawing = base.encode(
        x=alt.X("distance:Q", title="mean distance in feature space"),
        y=alt.Y("method:N", title=None, sort=order, axis=alt.Axis(labelLimit=150)),
        color=colour("statistic", ["α", "β", "γ"]),
        shape=alt.Shape("statistic:N", title=None, scale=symbols, legend=alt.Legend(**LEGEND)),
        tooltip=["method:N", "statistic:N", tip("distance", ".2f")],
    )
    title = f"{data}: {order[0]} has the same class closest together across domains (α / γ {ratio[order[0]]:.2f})"
    return Chart(name, title, drawing, "Dots: α, β and γ per method", MEANING)


def curve_tables(found: Sequence[MethodRun], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Per method and evaluation: `selected_on` in % (mean, min and max over the runs), and mean α, β, γ.

    `at` counts the steps of both stages; the untrained model is left out of the first table.
    """
    accuracy, distance = [], []
    for method, fold in [(run.method, fold) for run in found if run.method in methods for fold in run.folds]:
        records = RunFolder(fold.folder).records()
        for at, record in zip(counted_steps(records), records, strict=True):
            value = getattr((record.averaged or record).validation, fold.spec.selected_on)
            if has_learnt(record, records) and value is not None:
                accuracy.append((method, record.stage, at, 100 * value))
            known = {symbol: getattr(record.trace, name, None) for name, symbol in STATISTICS.items()}
            distance += [(method, at, symbol, value) for symbol, value in known.items() if value is not None]
    frame = pd.DataFrame(accuracy, columns=["method", "stage", "at", "value"])
    curves = frame.groupby(["method", "stage", "at"], sort=False)["value"].agg(["mean", "min", "max"]).reset_index()
    trace = pd.DataFrame(distance, columns=["method", "at", "statistic", "distance"])
    return curves, trace.groupby(["method", "at", "statistic"], sort=False)["distance"].mean().reset_index()


def curve_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str], metric: str) -> Chart:
    """Learning curves on the validation set."""
    last = table.sort_values(["stage", "at"]).groupby("method")["mean"].last()
    best = str(last.idxmax())
    base, scale = alt.Chart(table, width="container", height=280), alt.Scale(zero=False)
    base = base.encode(x=alt.X("at:Q", title="step"), color=colour("method", methods), detail="stage:O")
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("min:Q", scale=scale), y2="max:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=f"validation {metric}, %", scale=scale))
    line = line.encode(tooltip=["method:N", "stage:O", "at:Q", tip("mean", ".1f")])
    title = f"{data}: {best} ends highest on validation, at {last[best]:.1f} %"
    note = "Lines are means over the seeds, bands their range; a second line or point is the second stage."
    return Chart(name, title, band + line, f"Lines: validation {metric} over the training steps", note)


def trace_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Chart:
    """α, β, γ over the steps, one panel each, with a line per method."""
    base = alt.Chart(table, width=240, height=200).mark_line(point=True)
    drawing = base.encode(
        x=alt.X("at:Q", title="step"),
        y=alt.Y("distance:Q", title="mean distance in feature space"),
        color=colour("method", [method for method in methods if method in set(table["method"])]),
        tooltip=["method:N", "at:Q", "statistic:N", tip("distance", ".2f")],
    ).facet(facet=alt.Facet("statistic:N", title=None, sort=list(STATISTICS.values())), columns=3)
    last = table.sort_values("at").groupby(["method", "statistic"])["distance"].last().unstack()
    title = f"{data}: distances between pairs during training"
    if {"α", "γ"} <= set(last):
        ratio = last["α"] / last["γ"]
        title = f"{data}: {ratio.idxmin()} brings a class closest together across domains, α / γ {ratio.min():.2f}"
    return Chart(name, title, drawing, "Lines: α, β and γ of each method over the training steps", MEANING)


def angle(names: Iterable[str]) -> int:
    """Angle of the labels below an axis: flat if they are short."""
    return 0 if max(map(len, names)) <= 2 else -90


def colour(field: str, order: Sequence[str]) -> alt.Color:
    """A colour for each name in this order, grey for "others"."""
    return colours(field, palette(order), **LEGEND)
