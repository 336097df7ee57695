"""The tables of an audit as pictures; each title says what there is to see."""

import textwrap

import altair as alt
import numpy as np

from crosstail.report.audit.result import Audit
from crosstail.report.audit.tables import between_table, count_table, size_table, uniform_table
from crosstail.report.audit.wording import has
from crosstail.report.charts import PALETTE

NUMBERED = 40  # classes up to which a cell has room for its number
DRAWN = 4000  # pairs up to which a heat map is drawn
LISTED = 40  # domains up to which all are shown
ZERO = "#D55E00"


def count_chart(audit: Audit) -> alt.LayerChart | None:
    """Training samples per pair as a heat map, orange where there are none; None if it would be too large."""
    if audit.train.size > DRAWN:
        return None
    table, numbered = count_table(audit), len(audit.classes) <= NUMBERED
    # Many classes are easier to take in from the most to the least frequent.
    order = None if numbered else [audit.classes[c] for c in (-audit.train.sum(axis=0)).argsort(kind="stable")]
    step = 56 if len(audit.classes) <= 12 else 32 if numbered else 13
    short = max(map(len, audit.classes)) <= 4
    axis = alt.Axis(
        labelAngle=0 if short and numbered else -40 if numbered else -90, labelLimit=120, labelOverlap=False, grid=False
    )
    base = alt.Chart(table, width=alt.Step(step), height=alt.Step(34)).encode(
        x=alt.X("class:N", title="class", sort=order, axis=axis),
        y=alt.Y("domain:N", title="domain", sort=None, axis=alt.Axis(labelLimit=120)),
        tooltip=["domain:N", "class:N", alt.Tooltip("count:Q", title="training samples"), "shot:N"],
    )
    colour = alt.Color(
        "count:Q",
        title="training samples (log scale)",
        scale=alt.Scale(type="log", scheme="blues", domain=[1, max(2, int(audit.train.max()))]),
        legend=alt.Legend(orient="top", gradientLength=160, titleLimit=300),
    )
    layers: list[alt.Chart] = [
        base.transform_filter("datum.count > 0").mark_rect(stroke="white", strokeWidth=1).encode(color=colour),
        base.transform_filter("datum.count == 0").mark_rect(stroke="white", strokeWidth=1, color=ZERO),
    ]
    if numbered:
        ink = alt.condition("datum.dark || datum.count == 0", alt.value("white"), alt.value("black"))
        layers.append(base.mark_text(fontSize=11).encode(text="count:Q", color=ink))
    return _layers(*layers).properties(title=_title(count_finding(audit)))


def count_finding(audit: Audit) -> str:
    """What the counts show, in a sentence."""
    there = audit.train[audit.train > 0]
    if not len(there):
        return "There is no training sample."
    zero = len(audit.zero_pairs)
    none = f"; {zero:,} of {audit.train.size:,} {has(zero)} none (orange)" if zero else ""
    return f"The largest pair has {there.max():,} training samples, the smallest {there.min():,}{none}"


def size_chart(audit: Audit) -> alt.LayerChart:
    """How many pairs have so many training samples."""
    table = size_table(audit)
    base = alt.Chart(table, width=alt.Step(44), height=180).encode(
        x=alt.X("samples:N", title="training samples of a pair", sort=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("pairs:Q", title="pairs"),
        tooltip=["samples:N", "pairs:Q"],
    )
    ink = alt.condition("datum.samples == '0'", alt.value(ZERO), alt.value(PALETTE[0]))
    bars = base.mark_bar().encode(color=ink)
    return _layers(bars, _numbers(base, "pairs:Q", dy=-7)).properties(title=_title(size_finding(audit)))


def size_finding(audit: Audit) -> str:
    """How many pairs are rare, in a sentence."""
    shots = audit.shot_counts()
    rare = shots["few"] + shots["zero"]
    return f"{rare:,} of {audit.train.size:,} pairs {has(rare)} at most {audit.few} training samples"


def uniform_chart(audit: Audit) -> alt.LayerChart:
    """Divergence of each domain from uniform; of more than 40 domains, those that are farthest."""
    table = uniform_table(audit)
    table = table if len(table) <= LISTED else table.nlargest(LISTED, "bits")
    top = max(0.1, 1.2 * float(table["bits"].max()))
    plain = alt.Axis(grid=False, tickCount=5)
    base = alt.Chart(table, width=230, height=alt.Step(26)).encode(
        x=alt.X("bits:Q", title="divergence from uniform, bits", scale=alt.Scale(domain=[0, top]), axis=plain),
        y=alt.Y("domain:N", title="domain", sort=None, axis=alt.Axis(labelLimit=120)),
        tooltip=[
            "domain:N",
            alt.Tooltip("bits:Q", format=".3f"),
            alt.Tooltip("effective classes:Q", format=".1f"),
            alt.Tooltip("imbalance ratio:Q", format=".0f"),
        ],
    )
    bars = base.mark_bar(color=PALETTE[0], height=16)
    numbers = _numbers(base, alt.Text("bits:Q", format=".2f"), dx=4, align="left")
    return _layers(bars, numbers).properties(title=_title(uniform_finding(audit)))


def uniform_finding(audit: Audit) -> str:
    """Which domain is the least balanced, in a sentence."""
    d = audit.divergence
    worst = int(np.nanargmax(d.from_uniform))
    least = "the least balanced:" if np.count_nonzero(d.samples) > 1 else "away from uniform by"
    return (
        f"{audit.domains[worst]} is {least} {d.from_uniform[worst]:.2f} bits, as if it had "
        f"{d.effective_classes[worst]:.1f} of {len(audit.classes)} classes"
    )


def between_chart(audit: Audit) -> alt.LayerChart | None:
    """Divergence between every two domains as a heat map; None with fewer than two domains, or more than 40."""
    table = between_table(audit)
    domains = table["domain"].nunique()
    if not 2 <= domains <= LISTED:
        return None
    top = max(0.3, float(table["bits"].max()))
    table["dark"] = table["bits"] > 0.6 * top
    step = 52 if domains <= 12 else 18
    base = alt.Chart(table, width=alt.Step(step), height=alt.Step(34 if domains <= 12 else 18)).encode(
        x=alt.X("other:N", title="other domain", sort=None, axis=alt.Axis(labelAngle=-40, labelLimit=120)),
        y=alt.Y("domain:N", title="domain", sort=None, axis=alt.Axis(labelLimit=120)),
        tooltip=["domain:N", "other:N", alt.Tooltip("bits:Q", format=".3f")],
    )
    colour = alt.Color("bits:Q", title="bits", scale=alt.Scale(scheme="purples", domain=[0, top]))
    layers = [base.mark_rect(stroke="white", strokeWidth=1).encode(color=colour)]
    if domains <= 12:
        ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
        layers.append(base.mark_text(fontSize=11).encode(text=alt.Text("bits:Q", format=".2f"), color=ink))
    return _layers(*layers).properties(title=_title(between_finding(audit)))


def between_finding(audit: Audit) -> str:
    """Which domains differ most, in a sentence."""
    far = audit.divergence.farthest()
    if far is None:
        return "There is one domain only."
    d, (one, other) = audit.divergence, far
    both, chance = (
        f"{audit.domains[one]} and {audit.domains[other]}",
        f"of which {d.chance_mismatch:.2f} would be chance",
    )
    if np.count_nonzero(d.samples) == 2:
        return f"{both} differ by {d.between[far]:.2f} bits, {chance}"
    return f"{both} differ most: {d.between[far]:.2f} bits; the mean is {d.mismatch:.2f}, {chance}"


def _layers(*layers: alt.Chart) -> alt.LayerChart:
    chart = alt.layer(*layers)
    assert isinstance(chart, alt.LayerChart)  # a facet only if a layer is one
    return chart


def _numbers(base: alt.Chart, text: object, **mark: object) -> alt.Chart:
    # Grey that is readable on white and on black: the page may be either.
    return base.mark_text(color="#8a8a92", fontSize=11, **mark).encode(text=text)  # type: ignore[arg-type]


def _title(text: str) -> alt.TitleParams:
    """Left-aligned and in lines that fit a telephone, for a title is cut off at the chart's edge."""
    return alt.TitleParams(text=textwrap.wrap(text, 46), anchor="start", fontSize=13)
