"""The chart of an audit: a table first, with a title that states the finding."""

import numpy as np
import pandas as pd

from crosstail.reports.audit.result import Audit
from crosstail.reports.charts import PALETTE, names, numbers, ramp, shades, tip
from crosstail.reports.document.model import Chart
from crosstail.reports.label_table import label_table
from crosstail.reports.vega_lite import draw, layer
from crosstail.reports.wording import has

NUMBERED = 40  # up to this many classes, cells have room for a number
DRAWN = 4000  # up to this many pairs, a heat map is drawn

ZERO = PALETTE[5]


def count_table(audit: Audit) -> pd.DataFrame:
    """One row per pair: domain, class, training count, shot group, and whether its cell is dark on a log scale."""
    table = label_table(audit.train, audit.domains, audit.classes)
    table["shot"] = audit.shots.ravel()
    table["dark"] = np.log(np.maximum(table["count"], 1)) > 0.6 * np.log(max(int(audit.train.max(initial=0)), 2))
    return table


def count_chart(audit: Audit) -> Chart | None:
    """Heat map of training samples per pair, orange where there are none; None if it would be empty or too large."""
    if audit.train.size > DRAWN or not audit.train.any():
        return None
    numbered = len(audit.classes) <= NUMBERED
    # Many classes are easier to read from the most to the least frequent.
    order = None if numbered else [audit.classes[c] for c in (-audit.train.sum(axis=0)).argsort(kind="stable")]
    angle = -90 if not numbered else 0 if max(map(len, audit.classes)) <= 4 else -40
    base = draw(count_table(audit)).encode(
        x=names("class", "class", order, labelAngle=angle, labelOverlap=False, grid=False),
        y=names("domain", "domain"),
        tooltip=["domain:N", "class:N", tip("count", title="training samples"), "shot:N"],
    )
    there, zero = audit.train[audit.train > 0], len(audit.zero_pairs)
    scale = ramp([1, max(2, int(there.max()))], type="log")
    colour = shades("count", "training samples (log scale)", scale, titleLimit=300)
    cells = base.mark("rect")
    layers = [cells.where("datum.count > 0").encode(color=colour)]
    layers.append(cells.where("datum.count == 0").encode(color={"value": ZERO}))
    if numbered:
        layers.append(numbers(base, "count", "", "datum.dark || datum.count == 0"))
    drawing = layer(*layers, width="container" if numbered else {"step": 13}, height={"step": 34})
    none = f"; {zero:,} of {audit.train.size:,} {has(zero)} none (orange)" if zero else ""
    title = f"The largest pair has {there.max():,} training samples, the smallest {there.min():,}{none}"
    alternative = f"Heat map: training samples per domain and class. {title}."
    return Chart("counts", title, drawing, alternative, widest=240 + 90 * len(audit.classes))
