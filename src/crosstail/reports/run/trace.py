"""How the pairs moved during training, from the trace that `fit --trace` adds to the records."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosstail.reports.document.model import Chart
from crosstail.reports.graph_chart import READING, graph_chart
from crosstail.reports.label_table import label_table
from crosstail.reports.run.charts import transfer_chart
from crosstail.reports.run.tables import STATISTICS, transfer_curve
from crosstail.reports.wording import number
from crosstail.training.result import Evaluation, RunResult
from crosstail.transfer.layout import aligned

MEANING = "α: same class, other domain (small is good); β: other class, same domain; γ: both other (large is good)."


def traced(records: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations with a trace; only stage one has them, because the second stage keeps the features fixed."""
    return [record for record in records if record.trace is not None]


def selected(result: RunResult, evaluations: Sequence[Evaluation]) -> int:
    """Index of the evaluation selected in stage one; if it has no trace, of the last one before it."""
    before = [i for i, record in enumerate(evaluations) if record.step <= result.selected_steps[0]]
    return before[-1] if before else 0


def moving_nodes(result: RunResult, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """One row per pair with training samples: domain, class, count, and its points x0, y0, x1, y1, ... in each trace.

    The layout of the selected model is as in `crosstail graph`; from there in both directions, each layout is rotated
    and mirrored to match its neighbour.
    """
    nodes = label_table(result.counts, result.domains, result.classes)
    nodes = nodes[nodes["count"] > 0].reset_index(drop=True)
    layouts = [np.array(record.trace.points) for record in evaluations if record.trace]
    if any(layout.shape != (len(nodes), 2) for layout in layouts):
        raise ValueError(f"records.jsonl has a trace that is not of the {len(nodes)} pairs with training samples")
    middle = selected(result, evaluations)
    for i in reversed(range(middle)):
        layouts[i] = aligned(layouts[i], layouts[i + 1])
    for i in range(middle + 1, len(layouts)):
        layouts[i] = aligned(layouts[i], layouts[i - 1])
    points = {f"{axis}{i}": layout[:, k] for i, layout in enumerate(layouts) for k, axis in enumerate("xy")}
    return pd.concat([nodes, pd.DataFrame(points).round(4)], axis=1)


def trace_charts(result: RunResult, records: Sequence[Evaluation]) -> list[Chart]:
    """α, β, γ over the steps, and the pairs in the plane with a slider; none without a trace."""
    evaluations = traced(records)
    return [_statistics_chart(result, evaluations), *moving_charts(result, evaluations)] if evaluations else []


def moving_charts(result: RunResult, evaluations: Sequence[Evaluation]) -> list[Chart]:
    """The moving chart, or none if there are too many pairs to draw."""
    if not (evaluations := [record for record in evaluations if record.trace and record.trace.points]):
        return []
    titles = []
    for record in evaluations:
        known = [f"{symbol} {number(getattr(record.trace, name), 2)}" for name, symbol in STATISTICS.items()]
        titles.append(f"step {record.step:,}: {', '.join(known)}")
    start = selected(result, evaluations)
    titles[start] += ", selected"
    drawing = graph_chart(moving_nodes(result, evaluations), frames=titles, start=start)
    before, after = (record.trace.beta if record.trace else None for record in (evaluations[0], evaluations[start]))
    title = "The pairs during training"
    if before is not None and after is not None:
        title = f"Distances between classes within a domain went from {before:.2f} to {after:.2f} during training"
    note = f"{READING} The slider steps through the evaluations, starting at the selected model."
    return [Chart("trace-graph", title, drawing, "Scatter plot: the pairs in two dimensions, step by step", note)]


def _statistics_chart(result: RunResult, evaluations: Sequence[Evaluation]) -> Chart:
    table, end = transfer_curve(evaluations), selected(result, evaluations)
    title = "Distances between pairs during training"
    wide = table.pivot(index="at", columns="statistic", values="distance")
    if {"α", "γ"} <= set(wide):
        before, after = (wide["α"] / wide["γ"]).iloc[[0, end]]
        verb = "converged" if after < before else "moved apart"
        title = f"The same class in two domains {verb} during training: α / γ went from {before:.2f} to {after:.2f}"
    return Chart("trace", title, transfer_chart(table), "Lines: α, β and γ over the training steps", MEANING)
