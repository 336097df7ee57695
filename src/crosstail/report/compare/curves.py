"""Methods over the steps of training: validation accuracy, and α, β, γ of traced runs."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from crosstail.report.charts import tip
from crosstail.report.compare.charts import colour
from crosstail.report.compare.tables import MethodRun
from crosstail.report.document.model import Chart
from crosstail.report.run.tables import STATISTICS
from crosstail.report.run.trace import MEANING
from crosstail.training.folder import RunFolder


def curve_tables(found: Sequence[MethodRun], methods: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Per method and evaluation: `selected_on` in % (mean, min and max over the runs), and mean α, β, γ.

    `at` counts the steps of both stages; the untrained model is left out of the first table.
    """
    accuracy, distance = [], []
    for method, fold in [(run.method, fold) for run in found if run.method in methods for fold in run.folds]:
        for record in RunFolder(fold.folder).records():
            at = record.step + (record.stage - 1) * (fold.spec.steps or 0)
            value = getattr((record.averaged or record).validation, fold.spec.selected_on)
            if record.step > 0 and value is not None:
                accuracy.append((method, record.stage, at, 100 * value))
            known = {symbol: getattr(record.trace, name, None) for name, symbol in STATISTICS.items()}
            distance += [(method, at, symbol, value) for symbol, value in known.items() if value is not None]
    frame = pd.DataFrame(accuracy, columns=["method", "stage", "at", "value"])
    curves = frame.groupby(["method", "stage", "at"], sort=False)["value"].agg(["mean", "min", "max"]).reset_index()
    trace = pd.DataFrame(distance, columns=["method", "at", "statistic", "distance"])
    return curves, trace.groupby(["method", "at", "statistic"], sort=False)["distance"].mean().reset_index()


def curve_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str], metric: str) -> Chart:
    """Learning curves on the validation set."""
    last = table.sort_values("at").groupby("method")["mean"].last()
    best = str(last.idxmax())
    base = alt.Chart(table, width="container", height=280).encode(
        x=alt.X("at:Q", title="step"), color=colour("method", methods), detail="stage:O"
    )
    scale = alt.Scale(zero=False)
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("min:Q", scale=scale), y2="max:Q")
    line = base.mark_line(point=True).encode(
        y=alt.Y("mean:Q", title=f"validation {metric}, %", scale=scale),
        tooltip=["method:N", "stage:O", "at:Q", tip("mean", ".1f")],
    )
    title = f"{data}: {best} ends highest on validation, at {last[best]:.1f} %"
    note = "Lines are means over the seeds, bands their range; a second line is the second stage."
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
