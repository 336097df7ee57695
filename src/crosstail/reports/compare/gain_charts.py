"""The gain of a method over another on every pair, coloured by the part of it that exceeds the noise."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import FEW_TESTS, Metric, PairAccuracy, PairValues, SampleValues, find
from crosstail.metrics._comparisons import difference_interval
from crosstail.metrics._values import Z
from crosstail.reports.charts import INK, certain, colours, diverging, names, palette, search, shades, tip
from crosstail.reports.compare.charts import LABELLED, angle, counts_table
from crosstail.reports.compare.method_runs import MethodRun, by_method
from crosstail.reports.document.model import Chart
from crosstail.reports.vega_lite import Channel, Drawing, draw, either, field, layer
from crosstail.reports.wording import number
from crosstail.training.evaluation import MOST_PAIRS

COLOURED = (
    "The number is the gain in points, the colour its part that is beyond the noise: the end of the 95 % interval that "
    "is closest to 0. A pair with few test samples has little colour, however large its gain."
)
VALUES = ("gain", "low", "high", "sure")
Ends = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def gain_table(found: Sequence[MethodRun], baseline: str) -> pd.DataFrame:
    """One row per method and pair: count, shots, mean gain over the baseline (above 0: better), its 95 % interval.

    The interval treats the answers of both as independent, so it is wider than in a paired test; `sure` is what the
    cell is coloured by.
    """
    own, metric = by_method(found, found[0].data), find(found[0].metric)
    base, tables = own.pop(baseline), []
    for method, runs in own.items():
        gain, low, high = _gain([run.pairs for run in runs], [run.pairs for run in base])
        values = {"gain": gain, "low": low, "high": high, "sure": certain(low, high)}
        columns = {name: (metric.scale * of).round(metric.digits + 1).ravel() for name, of in values.items()}
        tables.append(counts_table(found[0]).assign(method=method, **columns))
    return pd.concat(tables, ignore_index=True)


def _gain(runs: Sequence[PairValues], base: Sequence[PairValues]) -> Ends:
    """By how much the metric is better on every pair (D, C), and the interval of that; NaN with few test samples."""
    values, other = (np.mean([run.matrix for run in side], axis=0) for side in (runs, base))
    if isinstance(runs[0], PairAccuracy):
        tests, other_tests = (
            np.mean([of.independent[1] for of in side if isinstance(of, PairAccuracy)], axis=0) for side in (runs, base)
        )
        totals = np.minimum(tests, other_tests)
        low, high = difference_interval(np.nan_to_num(values) * totals, np.nan_to_num(other) * totals, totals)
        return values - other, low, high
    errors = [np.mean([of.errors for of in side if isinstance(of, SampleValues)], axis=0) for side in (runs, base)]
    gain = (values - other) * (1 if runs[0].higher_is_better else -1)
    reach = np.where(runs[0].totals < FEW_TESTS, np.nan, Z * np.hypot(*errors))
    return gain, gain - reach, gain + reach


def gain_chart(name: str, data: str, table: pd.DataFrame, baseline: str, shown: str, metric: Metric) -> Chart:
    """Gain of a method over the baseline for each pair; a menu selects other methods."""
    methods = list(dict.fromkeys(table["method"]))
    pair = ["domain", "class", "count", "shot"]
    wide = table[table["method"] == methods[0]][pair].reset_index(drop=True)
    for i, method in enumerate(methods):
        own = table[table["method"] == method].reset_index(drop=True)
        wide = wide.assign(**{f"{value}{i}": own[value] for value in VALUES})
    pairs = len(wide)
    if pairs > MOST_PAIRS:
        wide = wide.sample(MOST_PAIRS, random_state=0).sort_index()
    menu = f"method_{name.replace('-', '_')}"
    choices = {"input": "select", "options": list(range(len(methods))), "labels": methods, "name": "method "}
    base = draw(wide).calculate(**{value: f"datum['{value}' + {menu}]" for value in VALUES})
    base = base.param({"name": menu, "value": methods.index(shown), "bind": choices})
    reach = max(float(table["gain"].abs().max()), metric.scale / 100)
    few_classes = table["class"].nunique() <= LABELLED
    drawing = gain_heat_map(base, wide, reach, metric) if few_classes else _points(base, wide, metric)
    gains = table[(table["method"] == shown) & table["gain"].notna()]
    rare = gains[gains["shot"].isin(["few", "zero"])]["gain"].mean()
    title = f"{data}: {shown} gains over {baseline} on {_beyond(gains, 1)} of {len(gains)} pairs and loses on "
    title += _beyond(gains, -1)
    average = f"{number(rare, metric.digits, '+')}{metric.points} on average"
    title += "" if np.isnan(rare) else f"; few- and zero-shot pairs gain {average}"
    note = COLOURED if few_classes else ""
    if pairs > MOST_PAIRS:
        note = f"The chart shows a random {MOST_PAIRS:,} of {pairs:,} pairs; the title counts all of them."
    if not metric.higher_is_better:
        note = f"A gain is a lower {metric.label}. {note}".rstrip()
    return Chart(name, title, drawing, f"Gain in test {metric.label} over {baseline} per domain and class", note)


def _beyond(gains: pd.DataFrame, sign: int) -> str:
    return f"{int((sign * gains['gain'] > 0).sum())} ({int((sign * gains['sure'] > 0).sum())} beyond the noise)"


def gain_heat_map(base: Drawing, table: pd.DataFrame, reach: float, metric: Metric) -> Drawing:
    """Cells of a chart that has `VALUES`: the longer of domains and classes runs across."""
    across, down = "class", "domain"
    if table["domain"].nunique() > table["class"].nunique():
        across, down = down, across
    base = base.encode(
        x=names(across, across, labelLimit=90, labelAngle=angle(table[across])),
        y=names(down, labelLimit=90),
        tooltip=_tooltip(metric),
    )
    colour = shades("sure", f"gain beyond the noise{_in_points(metric)}", diverging(reach), titleLimit=300)
    words = f"replace(format(datum.gain, '+.{metric.digits - 1}f'), regexp('^[+](0[.]?0*)$'), '$1')"
    text = base.calculate(words=f"isValid(datum.gain) ? {words} : ''").mark("text", fontSize=12)
    text = text.encode(text="words:N", color=either(f"abs(datum.sure) > {0.6 * reach}", "white", "currentColor"))
    height = 34 * table[down].nunique()
    return layer(base.mark("rect").encode(color=colour), text, width="container", height=height)


def _in_points(metric: Metric) -> str:
    return ", points" if metric.share else ""


def _tooltip(metric: Metric) -> Channel:
    form = f"+.{metric.digits}f"
    ends = tip("low", form, "95 % interval from"), tip("high", form, "to")
    return ["domain:N", "class:N", "count:Q", tip("gain", form, f"gain{_in_points(metric)}"), *ends]


def _points(base: Drawing, table: pd.DataFrame, metric: Metric) -> Drawing:
    """Too many pairs for cells: one mark each, to search and to zoom."""
    typed, match = search("find")
    scale = {"type": "log", "nice": False, "padding": 10}
    domains = palette(dict.fromkeys(table["domain"]))
    base = base.calculate(samples="max(datum.count, 0.5)").mark("point", filled=True, size=40)
    marks = base.encode(
        x=field("samples:Q", title="training samples (none at the left)", scale=scale),
        y=field("gain:Q", title=f"gain{_in_points(metric)}"),
        color=colours("domain", domains, "domain", orient="top", columns=3),
        opacity=either(match, 0.7, 0.03),
        tooltip=_tooltip(metric),
    )
    zero = draw(pd.DataFrame({"y": [0]})).mark("rule", color=INK).encode(y="y:Q")
    return layer(zero, marks.param(typed).zoom(), width="container", height=360)
