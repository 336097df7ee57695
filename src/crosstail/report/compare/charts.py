"""The figures of a report: each is a table, a sentence that says what it shows, and a chart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.metrics import shot_group
from crosstail.report.charts import INK, PALETTE
from crosstail.report.compare.tables import Entry
from crosstail.report.page import Chart, Page
from crosstail.report.run.tables import tested
from crosstail.report.tables import label_table
from crosstail.training.folder import RunFolder

LABELLED = 40  # classes up to which each has room for its name


@dataclass(frozen=True)
class Figure:
    """A chart, the finding that is its title, and what it shows for those who cannot see it."""

    name: str
    title: str
    chart: Chart
    alternative: str
    note: str = ""

    def show(self, page: Page) -> None:
        """Add it to a page, under its title."""
        page.heading(self.title)
        page.chart(self.chart, self.alternative)
        if self.note:
            page.text(self.note, dim=True)


def shortlist(summary: pd.DataFrame, data: str, baseline: str, number: int = 6) -> list[str]:
    """The methods that a figure has colours for: the baseline, the best of BoDA, and the best of the others."""
    rows = summary[(summary["data"] == data) & (summary["figure"] == "pair average") & (summary["kind"] == "figure")]
    ranked = rows.sort_values("mean", ascending=False, kind="stable")
    first = [*ranked[ranked["method"] == baseline]["method"], *ranked[ranked["boda"]]["method"][:1]]
    return list(dict.fromkeys([*first, *ranked["method"]]))[:number]


def counts_table(entry: Entry) -> pd.DataFrame:
    """Training samples and shot group of every pair; under dg, what the run without the first domain was trained on."""
    result = entry.results[0]
    table = label_table(result["counts"], result["domains"], result["classes"])
    table["shot"] = shot_group(table["count"], *shot_thresholds(result["spec"]["dataset"]))
    return table


def counts_figure(name: str, entry: Entry) -> Figure:
    """Label distributions across domains."""
    table = counts_table(entry)
    known = table["count"][table["count"] > 0]
    empty = int((table["count"] == 0).sum())
    classes = list(dict.fromkeys(table["class"]))
    if len(classes) > LABELLED:
        classes = list(table.groupby("class")["count"].sum().sort_values(ascending=False, kind="stable").index)
    chart = (
        alt.Chart(table, width=max(150, min(12 * len(classes), 300)), height=120)
        .mark_bar()
        .encode(
            x=alt.X(
                "class:N",
                title="class" if len(classes) <= LABELLED else "class, from common to rare",
                sort=classes,
                axis=alt.Axis(labels=len(classes) <= LABELLED, ticks=False, labelLimit=80, labelAngle=angle(classes)),
            ),
            y=alt.Y("count:Q", title="training samples"),
            color=alt.Color(
                "shot:N",
                title="shots",
                scale=alt.Scale(domain=["many", "medium", "few", "zero"], range=[*PALETTE[:3], PALETTE[5]]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=["domain:N", "class:N", "count:Q", "shot:N"],
        )
        .facet(facet=alt.Facet("domain:N", title=None, sort=list(dict.fromkeys(table["domain"]))), columns=3)
    )
    low, high = known.min(), known.max()
    title = f"{entry.data}: pairs have {low:,} to {high:,} training samples" if low < high else ""
    title = title or f"{entry.data}: every pair has {low:,} training samples"
    title += f", and {empty} of {len(table)} have none" if empty else ""
    many, few = shot_thresholds(entry.results[0]["spec"]["dataset"])
    note = f"Many is more than {many} training samples, medium {few + 1} to {many}, few 1 to {few}, zero none."
    return Figure(name, title, chart, "Bars: training samples per class, one panel per domain", note)


def gain_table(found: Sequence[Entry], baseline: str) -> pd.DataFrame:
    """One row per pair: count, shot, and per method its gain in test accuracy over the baseline, mean over seeds."""
    accuracy: dict[str, list[np.ndarray]] = {}
    for entry in found:
        accuracy.setdefault(entry.method, []).append(tested(entry.results).matrix)
    base = np.mean(accuracy.pop(baseline), axis=0)
    table = counts_table(found[0])
    for method, matrices in accuracy.items():
        table[method] = (100 * (np.mean(matrices, axis=0) - base)).round(2).ravel()
    return table


def gain_figure(name: str, data: str, table: pd.DataFrame, baseline: str, shown: str) -> Figure:
    """Where a method gains over the baseline, pair by pair; a menu shows the others."""
    methods = list(table.columns[4:])
    gains = table[shown].dropna()
    compact = table.rename(columns={method: f"g{i}" for i, method in enumerate(methods)})
    menu = alt.param(
        name=f"method_{name.replace('-', '_')}",
        value=methods.index(shown),
        bind=alt.binding_select(options=list(range(len(methods))), labels=methods, name="method "),
    )
    gain = f"datum['g' + {menu.name}]"
    reach = max(float(table[methods].abs().max().max()), 1.0)
    tooltip: list[Any] = ["domain:N", "class:N", "count:Q", alt.Tooltip("gain:Q", format="+.1f", title="gain, points")]
    chart = _gain_heat_map if table["class"].nunique() <= LABELLED else _gain_points
    drawn = chart(alt.Chart(compact).transform_calculate(gain=gain).add_params(menu), table, reach, tooltip)
    rare = table[table["shot"].isin(["few", "zero"])][shown].mean()
    words = "" if np.isnan(rare) else f"; few- and zero-shot pairs change by {rare:+.1f} points on average"
    title = f"{data}: {shown} gains over {baseline} on {int((gains > 0).sum())} of {len(gains)} pairs"
    title += f", loses on {int((gains < 0).sum())}{words}"
    return Figure(name, title, drawn, f"Gain in test accuracy over {baseline} per pair of domain and class")


def _gain_heat_map(base: alt.Chart, table: pd.DataFrame, reach: float, tooltip: list[Any]) -> alt.LayerChart:
    across, down = "class", "domain"
    if table["domain"].nunique() > table["class"].nunique():
        across, down = down, across
    base = base.encode(
        x=alt.X(f"{across}:N", title=across, sort=None, axis=alt.Axis(labelLimit=90, labelAngle=angle(table[across]))),
        y=alt.Y(f"{down}:N", title=None, sort=None, axis=alt.Axis(labelLimit=90)),
        tooltip=tooltip,
    ).properties(width="container", height=34 * table[down].nunique())
    scale = alt.Scale(scheme="purplegreen", domain=[-reach, reach], domainMid=0)
    legend = alt.Legend(orient="top", gradientLength=160)
    cells = base.mark_rect().encode(color=alt.Color("gain:Q", title="gain, points", scale=scale, legend=legend))
    ink = alt.condition(f"abs(datum.gain) > {0.6 * reach}", alt.value("white"), alt.value("black"))
    return cells + base.mark_text(fontSize=11).encode(text=alt.Text("gain:Q", format="+.0f"), color=ink)


def _gain_points(base: alt.Chart, table: pd.DataFrame, reach: float, tooltip: list[Any]) -> alt.LayerChart:
    """Too many for cells: a mark each, to search and to zoom."""
    search = alt.param(name="find", value="", bind=alt.binding(input="search", name="find "))
    domains = list(dict.fromkeys(table["domain"]))
    match = f"indexof(lower(datum['class'] + ' ' + datum['domain']), lower({search.name})) >= 0"
    marks = (
        base.transform_calculate(samples="max(datum.count, 0.5)")
        .mark_point(filled=True, size=40)
        .encode(
            x=alt.X(
                "samples:Q",
                title="training samples (none at the left)",
                scale=alt.Scale(type="log", nice=False, padding=10),
            ),
            y=alt.Y("gain:Q", title="gain, points"),
            color=alt.Color(
                "domain:N",
                scale=alt.Scale(domain=domains, range=PALETTE),
                title="domain",
                legend=alt.Legend(orient="top", columns=3),
            ),
            opacity=alt.condition(match, alt.value(0.7), alt.value(0.03)),
            tooltip=tooltip,
        )
        .add_params(search)
        .interactive()
    )
    zero = alt.Chart(pd.DataFrame({"y": [0]})).mark_rule(color=INK).encode(y="y:Q")
    return (zero + marks).properties(width="container", height=360)


def curve_table(found: Sequence[Entry], methods: Sequence[str]) -> pd.DataFrame:
    """One row per method and evaluation: mean, lowest and highest validation pair average over the seeds, in %."""
    rows = []
    for entry in found:
        if entry.method in methods:
            for folder, result in zip(entry.runs["folder"], entry.results, strict=True):
                for record in RunFolder(folder).records():
                    value = record["validation"]["pair_average"]
                    if record["step"] > 0 and value is not None:
                        at = record["step"] + (record["stage"] - 1) * result["spec"]["steps"]
                        rows.append((entry.method, record["stage"], at, 100 * value))
    frame = pd.DataFrame(rows, columns=["method", "stage", "at", "value"])
    grouped = frame.groupby(["method", "stage", "at"], sort=False)["value"]
    return grouped.agg(["mean", "min", "max"]).reset_index()


def curve_figure(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Learning curves on validation."""
    last = table.sort_values("at").groupby("method")["mean"].last()
    best = str(last.idxmax())
    base = alt.Chart(table, width="container", height=280).encode(
        x=alt.X("at:Q", title="step"), color=_colour("method", methods), detail="stage:O"
    )
    y = alt.Y("mean:Q", title="validation pair average, %", scale=alt.Scale(zero=False))
    tooltip = ["method:N", "stage:O", "at:Q", alt.Tooltip("mean:Q", format=".1f")]
    chart = base.mark_area(opacity=0.15).encode(
        y=alt.Y("min:Q", scale=alt.Scale(zero=False)), y2="max:Q"
    ) + base.mark_line(point=True).encode(y=y, tooltip=tooltip)
    title = f"{data}: {best} ends highest on validation, at {last[best]:.1f} %"
    note = "Lines are means and bands the range over the seeds; a second line is the second stage."
    return Figure(name, title, chart, "Lines: validation pair average over the training steps", note)


def separation_figure(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """Accuracy against (β + γ) − α over all models, the trials of a search included."""
    r = correlation(table["separation"], table["accuracy"])
    shown = table.assign(method=table["method"].where(table["method"].isin(methods), "others"))
    order = [*methods, *["others"] * bool((shown["method"] == "others").any())]
    scale = alt.Scale(zero=False, padding=10)
    chart = (
        alt.Chart(shown, width="container", height=300)
        .mark_point(filled=True, size=60, opacity=0.75)
        .encode(
            x=alt.X("separation:Q", title="(β + γ) − α, distance in feature space", scale=scale),
            y=alt.Y("accuracy:Q", title="test pair average, %", scale=scale),
            color=_colour("method", order),
            tooltip=[
                "method:N",
                "seed:N",
                alt.Tooltip("separation:Q", format=".2f"),
                alt.Tooltip("accuracy:Q", format=".1f"),
            ],
        )
        .interactive()
    )
    strength = "goes with" if r > 0.5 else "goes against" if r < -0.5 else "says little of"
    title = f"{data}: over {len(table)} models, (β + γ) − α {strength} accuracy"
    title += "" if np.isnan(r) else f" (r = {r:+.2f})"
    return Figure(name, title, chart, "Points: test accuracy of each model against how far classes are apart")


def correlation(x: pd.Series, y: pd.Series) -> float:
    """Pearson's, or nan where there are too few points or all are the same."""
    return float(np.corrcoef(x, y)[0, 1]) if len(x) > 2 and x.nunique() > 1 < y.nunique() else float("nan")


def transfer_figure(name: str, data: str, table: pd.DataFrame) -> Figure:
    """α, β, γ of each method."""
    means = table.groupby("method", sort=False)[["α", "β", "γ"]].mean()
    long = means.reset_index().melt("method", var_name="statistic", value_name="distance")
    ratio = means["α"] / means["γ"]
    order = list(ratio.sort_values().index)
    chart = (
        alt.Chart(long, width="container", height=20 * len(means))
        .mark_point(filled=True, size=90, opacity=0.9)
        .encode(
            x=alt.X("distance:Q", title="mean distance in feature space"),
            y=alt.Y("method:N", title=None, sort=order, axis=alt.Axis(labelLimit=150)),
            color=_colour("statistic", ["α", "β", "γ"]),
            shape=alt.Shape("statistic:N", title=None, scale=alt.Scale(domain=["α", "β", "γ"]), legend=_legend()),
            tooltip=["method:N", "statistic:N", alt.Tooltip("distance:Q", format=".2f")],
        )
    )
    title = f"{data}: {order[0]} has the same class of two domains closest to each other (α / γ {ratio[order[0]]:.2f})"
    note = "α: same class, other domain (small is good); β: other class, same domain; γ: both other (large is good)."
    return Figure(name, title, chart, "Dots: α, β and γ per method", note)


def angle(names: Iterable[str]) -> int:
    """Of the labels below an axis: flat where they are short."""
    return 0 if max(map(len, names)) <= 2 else -90


def _colour(field: str, order: Sequence[str]) -> alt.Color:
    colours = [INK if name == "others" else PALETTE[i % len(PALETTE)] for i, name in enumerate(order)]
    scale = alt.Scale(domain=list(order), range=colours)
    return alt.Color(f"{field}:N", title=None, sort=list(order), scale=scale, legend=_legend())


def _legend() -> alt.Legend:
    return alt.Legend(orient="top", labelLimit=0, columns=3, symbolOpacity=1)
