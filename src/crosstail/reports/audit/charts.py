"""Charts of an audit: each is a table first, and its title states the finding."""

import numpy as np
import pandas as pd

from crosstail.reports.audit.result import Audit
from crosstail.reports.charts import INK, PALETTE, names, numbers, ramp, shades, tip
from crosstail.reports.document.model import Chart
from crosstail.reports.label_table import label_table
from crosstail.reports.vega_lite import draw, field, layer
from crosstail.reports.wording import has

NUMBERED = 40  # up to this many classes, cells have room for a number
DRAWN = 4000  # up to this many pairs, a heat map is drawn
LISTED = 40  # up to this many domains are shown

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


def uniform_chart(audit: Audit) -> Chart:
    """Divergence of each domain from uniform; with many domains, the largest ones."""
    d = audit.divergence
    columns = {"bits": d.from_uniform, "effective classes": d.effective_classes, "imbalance ratio": d.imbalance_ratio}
    table = pd.DataFrame({"domain": audit.domains, **columns})[d.samples > 0]
    table = table if len(table) <= LISTED else table.nlargest(LISTED, "bits")
    top = max(0.1, 1.2 * float(table["bits"].max()))
    sized = {"scale": {"domain": [0, top]}, "axis": {"grid": False, "tickCount": 5}}
    base = draw(table).encode(
        x=field("bits:Q", title="divergence from uniform, bits", **sized),
        y=names("domain", "domain"),
        tooltip=["domain:N", tip("bits", ".3f"), tip("effective classes", ".1f"), tip("imbalance ratio", ".0f")],
    )
    bars = base.mark("bar", color=PALETTE[0], height=16)
    bits = base.mark("text", color=INK, fontSize=11, dx=4, align="left").encode(text=field("bits:Q", format=".2f"))
    drawing = layer(bars, bits, width="container", height={"step": 26})
    worst = int(np.nanargmax(d.from_uniform))
    least = "is the least balanced domain:" if np.count_nonzero(d.samples) > 1 else "is"
    title = (
        f"{audit.domains[worst]} {least} {d.from_uniform[worst]:.2f} bits from uniform, equivalent to "
        f"{d.effective_classes[worst]:.1f} balanced classes of {len(audit.classes)}"
    )
    return Chart("uniform", title, drawing, f"Bars: divergence from uniform. {title}.", widest=700)


def between_chart(audit: Audit) -> Chart | None:
    """Heat map of the divergence between domains; None with fewer than two domains, or too many."""
    d, far = audit.divergence, audit.divergence.farthest()
    there = np.flatnonzero(d.samples > 0)
    if far is None or len(there) > LISTED:
        return None
    rows = [(audit.domains[i], audit.domains[j], float(d.between[i, j])) for i in there for j in there]
    table = pd.DataFrame(rows, columns=["domain", "other", "bits"])
    top, small = max(0.3, float(table["bits"].max())), len(there) > 12
    base = draw(table).encode(
        x=names("other", "other domain", labelAngle=-40),
        y=names("domain", "domain"),
        tooltip=["domain:N", "other:N", tip("bits", ".3f")],
    )
    layers = [base.mark("rect").encode(color=field("bits:Q", scale=ramp([0, top], "90, 60, 160")))]
    if not small:
        layers.append(numbers(base, "bits", ".2f", f"datum.bits > {0.6 * top}"))
    drawing = layer(*layers, width={"step": 18 if small else 52}, height={"step": 18 if small else 34})
    both, chance = " and ".join(audit.domains[i] for i in far), f"{d.chance_mismatch:.2f} expected by chance"
    title = f"{both} differ by {d.between[far]:.2f} bits, {chance}"
    if len(there) > 2:
        title = f"{both} differ most: {d.between[far]:.2f} bits; the mean is {d.mismatch:.2f}, {chance}"
    return Chart("between", title, drawing, f"Heat map: divergence between domains. {title}.")
