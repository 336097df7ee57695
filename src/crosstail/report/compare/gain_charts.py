"""The gain of a method over another on every pair, coloured by what is certain of it."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from crosstail.metrics.comparisons import difference_interval
from crosstail.report.charts import INK, certain, colours, diverging, names, numbers, palette, search, shades, tip
from crosstail.report.compare.charts import LABELLED, angle, counts_table
from crosstail.report.compare.method_runs import MethodRun
from crosstail.report.document.model import Chart

COLOURED = (
    "The number is the gain in points, the colour its part that is beyond the noise: the end of the 95 % interval that "
    "is closest to 0. A pair with few test samples has little colour, however large its gain."
)
VALUES = ("gain", "low", "high", "sure")


def gain_table(found: Sequence[MethodRun], baseline: str) -> pd.DataFrame:
    """One row per method and pair: count, shots, gain in test accuracy over the baseline, and its 95 % interval.

    Accuracies are means over the seeds. The interval treats the answers of both as independent, so it is wider than
    that of a paired test; `sure` is what the cell is coloured by.
    """
    own: dict[str, list[MethodRun]] = {}
    for run in found:
        own.setdefault(run.method, []).append(run)
    means = {method: np.mean([run.accuracy.matrix for run in runs], axis=0) for method, runs in own.items()}
    tests = {method: np.mean([run.accuracy.independent[1] for run in runs], axis=0) for method, runs in own.items()}
    base, tables = means.pop(baseline), []
    for method, accuracy in means.items():
        totals = np.minimum(tests[method], tests[baseline])
        low, high = difference_interval(np.nan_to_num(accuracy) * totals, np.nan_to_num(base) * totals, totals)
        values = {"gain": accuracy - base, "low": low, "high": high, "sure": certain(low, high, 0)}
        columns = {name: (100 * of).round(2).ravel() for name, of in values.items()}
        tables.append(counts_table(found[0]).assign(method=method, **columns))
    return pd.concat(tables, ignore_index=True)


def gain_chart(name: str, data: str, table: pd.DataFrame, baseline: str, shown: str) -> Chart:
    """Gain of a method over the baseline for each pair; a menu selects other methods."""
    methods = list(dict.fromkeys(table["method"]))
    pair = ["domain", "class", "count", "shot"]
    wide = table[table["method"] == methods[0]][pair].reset_index(drop=True)
    for i, method in enumerate(methods):
        own = table[table["method"] == method].reset_index(drop=True)
        wide = wide.assign(**{f"{value}{i}": own[value] for value in VALUES})
    choices = alt.binding_select(options=list(range(len(methods))), labels=methods, name="method ")
    menu = alt.param(name=f"method_{name.replace('-', '_')}", value=methods.index(shown), bind=choices)
    base = alt.Chart(wide).transform_calculate(**{value: f"datum['{value}' + {menu.name}]" for value in VALUES})
    reach = max(float(table["gain"].abs().max()), 1.0)
    few_classes = table["class"].nunique() <= LABELLED
    drawing = gain_heat_map(base.add_params(menu), wide, reach) if few_classes else _points(base.add_params(menu), wide)
    gains = table[(table["method"] == shown) & table["gain"].notna()]
    rare = gains[gains["shot"].isin(["few", "zero"])]["gain"].mean()
    title = f"{data}: {shown} gains over {baseline} on {_beyond(gains, 1)} of {len(gains)} pairs and loses on "
    title += _beyond(gains, -1)
    title += "" if np.isnan(rare) else f"; few- and zero-shot pairs change by {rare:+.1f} points on average"
    note = COLOURED if few_classes else ""
    return Chart(name, title, drawing, f"Gain in test accuracy over {baseline} per domain and class", note)


def _beyond(gains: pd.DataFrame, sign: int) -> str:
    return f"{int((sign * gains['gain'] > 0).sum())} ({int((sign * gains['sure'] > 0).sum())} beyond the noise)"


def gain_heat_map(base: alt.Chart, table: pd.DataFrame, reach: float) -> alt.LayerChart:
    """Cells of a chart that has `VALUES`: the longer of domains and classes runs across."""
    across, down = "class", "domain"
    if table["domain"].nunique() > table["class"].nunique():
        across, down = down, across
    base = base.encode(
        x=names(alt.X, across, title=across, labelLimit=90, labelAngle=angle(table[across])),
        y=names(alt.Y, down, labelLimit=90),
        tooltip=_tooltip(),
    ).properties(width="container", height=34 * table[down].nunique())
    colour = shades("sure", "gain beyond the noise, points", diverging(reach), titleLimit=300)
    cells = base.mark_rect().encode(color=colour)
    return cells + numbers(base, "gain", "+.0f", f"abs(datum.sure) > {0.6 * reach}")


def _tooltip() -> list[str | alt.Tooltip]:
    ends = tip("low", "+.1f", "95 % interval from"), tip("high", "+.1f", "to")
    return ["domain:N", "class:N", "count:Q", tip("gain", "+.1f", "gain, points"), *ends]


def _points(base: alt.Chart, table: pd.DataFrame) -> alt.LayerChart:
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
        tooltip=_tooltip(),
    )
    zero = alt.Chart(pd.DataFrame({"y": [0]})).mark_rule(color=INK).encode(y="y:Q")
    return (zero + marks.add_params(field).interactive()).properties(width="container", height=360)
