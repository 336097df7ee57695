"""The leaderboard of a race as a table, two charts and a page."""

import json
import math
import shlex
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Literal

import altair as alt
import pandas as pd

from crosstail.report.charts import INK, PALETTE
from crosstail.report.page import Page

Record = dict[str, Any]
"""What race.json holds."""

Width = int | Literal["container"]
# Six colours that colour-blind readers can tell apart; families of one or two algorithms share two of them.
MARKS = {
    "vanilla": (PALETTE[5], "circle"),
    "imbalance": (PALETTE[0], "circle"),
    "invariance": (PALETTE[1], "circle"),
    "ours": (PALETTE[2], "circle"),
    "augmentation": (PALETTE[3], "square"),
    "meta-learning": (PALETTE[3], "triangle-up"),
    "multi-task": (PALETTE[3], "diamond"),
    "robust optimisation": (PALETTE[4], "square"),
    "transfer": (PALETTE[4], "triangle-up"),
    "own": (PALETTE[4], "diamond"),
}
ROW = 22  # pixels
HEADER = ["validation", "test", "95 % interval", "± seeds", "worst domain", "lead", "95 % interval", "seconds"]


def board_table(record: Record) -> pd.DataFrame:
    """One row per algorithm, in the order of the leaderboard: accuracies in %, the first's lead over it in points."""
    rows = []
    for place, row in enumerate(record["leaderboard"], 1):
        lead = row["lead"] or {"estimate": 0.0, "low": 0.0, "high": 0.0}
        rows.append(
            {
                "place": place,
                "family": row["family"] if row["family"] in MARKS else "own",
                **{name: row[name] for name in ("algorithm", "level", "seconds")},
                **{name: 100 * row[name] for name in ("validation", "test", "low", "high", "worst_domain")},
                "deviation": float("nan") if row["deviation"] is None else 100 * row["deviation"],
                "lead": 100 * lead["estimate"],
                "lead_low": 100 * lead["low"],
                "lead_high": 100 * lead["high"],
            }
        )
    return pd.DataFrame(rows)


def board_chart(table: pd.DataFrame, width: Width = "container") -> alt.LayerChart:
    """Test accuracy with its interval, the best on validation at the top; a grey line is the validation figure.

    What the first is ahead of by more than the noise is faint.
    """
    base = _base(table, table, width)
    scale = alt.Scale(zero=False, nice=False, padding=8)
    intervals = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="pair average, %", scale=scale, axis=alt.Axis(tickCount=8)), x2="high:Q"
    )
    validation = base.mark_tick(thickness=2, size=12).encode(x="validation:Q", color=alt.value(INK))
    return intervals + validation + _marks(base, table).encode(x="test:Q")


def lead_chart(table: pd.DataFrame, width: Width = "container") -> alt.LayerChart:
    """The first's lead over every other on the same test samples, with its interval; a line is where both are equal."""
    base = _base(table[table["place"] > 1], table, width)
    title = f"points by which {table['algorithm'][0]} is ahead on the test"
    x = alt.X("lead_low:Q", title=title, scale=alt.Scale(nice=False, padding=8))
    equal = alt.Chart(pd.DataFrame({"equal": [0]})).mark_rule(strokeDash=[4, 4], color=INK).encode(x="equal:Q")
    return equal + base.mark_rule(strokeWidth=2).encode(x=x, x2="lead_high:Q") + _marks(base, table).encode(x="lead:Q")


def _base(shown: pd.DataFrame, table: pd.DataFrame, width: Width) -> alt.Chart:
    figures = {
        "validation": "validation, %",
        "test": "test, %",
        "low": "95 % interval from",
        "high": "to",
        "lead": "points by which the first is ahead",
        "lead_low": "95 % interval from ",
        "lead_high": "to ",
    }
    families = _families(table)
    return alt.Chart(shown, width=width, height=alt.Step(ROW)).encode(
        y=alt.Y("algorithm:N", title=None, sort=None, axis=alt.Axis(labelLimit=130, labelOverlap=False)),
        color=alt.Color(
            "family:N",
            title=None,
            scale=alt.Scale(domain=list(families), range=[colour for colour, _ in families.values()]),
            legend=alt.Legend(orient="bottom", columns=3, labelLimit=0),
        ),
        opacity=alt.condition("datum.level", alt.value(1), alt.value(0.35)),
        tooltip=[
            "algorithm:N",
            "family:N",
            *(alt.Tooltip(f"{name}:Q", title=words, format=".1f") for name, words in figures.items()),
        ],
    )


def _marks(base: alt.Chart, table: pd.DataFrame) -> alt.Chart:
    families = _families(table)
    scale = alt.Scale(domain=list(families), range=[shape for _, shape in families.values()])
    return base.mark_point(size=70, filled=True).encode(shape=alt.Shape("family:N", title=None, scale=scale))


def _families(table: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """The colour and shape of each family that is there."""
    found = set(table["family"])
    return {family: mark for family, mark in MARKS.items() if family in found}


def write_page(out: Path) -> Path:
    """Make OUT/report.html from OUT/race.json, and say where it is."""
    record: Record = json.loads((out / "race.json").read_text(encoding="utf-8"))
    table = board_table(record)
    page = Page(f"Which algorithm for {Path(record['dataset']).name}?")
    page.text(record["recommendation"])
    page.heading("The leaderboard")
    page.text(
        "From the best on validation (grey line) to the worst. Marks are the accuracy on the test, the mean over all "
        "pairs of domain and class, with 95 % intervals. Faint ones are behind the first by more than the noise."
    )
    page.chart(board_chart(table), "Dots with intervals: test accuracy of every algorithm, by place")
    if len(table) > 1:
        page.heading("Which differences are more than noise")
        page.text(
            f"{table['algorithm'][0]} beside each of the others on the same {record['samples']:,} test samples: what "
            "is hard for both cancels. An interval that reaches the dashed line may be no difference at all."
        )
        page.chart(lead_chart(table), "Dots with intervals: lead of the first over every other algorithm")
    page.heading("All figures")
    page.table(["", *HEADER], [[row["algorithm"], *cells(row)] for row in table.to_dict("records")])
    page.text(
        "Accuracies in %. Lead: by how many points the first is ahead on the test. Seconds: of one run, on average, "
        "with whatever else the machine did.",
        dim=True,
    )
    _missing(page, record)
    _method(page, record)
    page.heading("How to go on")
    run = out / "runs" / record["leaderboard"][0]["runs"]["0"]
    page.text("The first's model is there to be used, and any of them can be trained again with what was chosen here:")
    page.code(
        f"{shlex.join(['crosstail', 'predict', str(run)])} FILES\n"
        f"{shlex.join(['crosstail', 'fit', record['dataset'], '--hparams', str(out / 'selected.json')])} "
        "--algorithm NAME --out run"
    )
    page.save(out / "report.html")
    return out / "report.html"


def cells(row: Mapping[Hashable, Any]) -> list[str]:
    """The figures of a row of the table, as they are shown under `HEADER`."""
    deviation = "" if math.isnan(row["deviation"]) else f"{row['deviation']:.1f}"
    lead = (
        [f"{row['lead']:+z.1f}", f"{row['lead_low']:+z.1f} to {row['lead_high']:+z.1f}"]
        if row["place"] > 1
        else ["", ""]
    )
    return [
        f"{row['validation']:.1f}",
        f"{row['test']:.1f}",
        f"{row['low']:.1f} to {row['high']:.1f}",
        deviation,
        f"{row['worst_domain']:.1f}",
        *lead,
        f"{row['seconds']:.1f}",
    ]


def _missing(page: Page, record: Record) -> None:
    if record["left_out"]:
        page.heading("Left out")
        for why in record["left_out"].values():
            page.text(why)
    if record["failed"]:
        page.heading("Runs that failed")
        rows = [[failed["algorithm"], failed["run"], failed["error"]] for failed in record["failed"]]
        page.table(["", "run", "error"], rows, words_last=True)


def _method(page: Page, record: Record) -> None:
    page.heading("How it was done")
    seen = f"Every image was embedded once by {record['backbone']}. " if record["freeze"] else ""
    page.text(
        f"{seen}Each algorithm trained the same two-layer network on the vectors, {record['trials']} times for "
        f"{record['steps']:,} steps with {record['batch_size']} samples per domain: once with its default "
        "hyperparameters, then with random ones. The trial that is best on validation was chosen"
        + (f" and run from {record['seeds']} seeds; figures are means over them. " if record["seeds"] > 1 else ". ")
        + "The order is that of validation, of equals the cheapest first: fewest passes over a batch in a step, then "
        "fewest stages, then fewest hyperparameters to search. The test had no say in any of this."
    )
    page.text(
        "Intervals come from a bootstrap over the test samples"
        + (" and cover those of every seed. " if record["seeds"] > 1 else ". ")
        + "They are not widened for the number of comparisons: of twenty algorithms that are just as good, about one "
        "will seem to be behind. A lead within the noise does not say that there is none, but that these test samples "
        "cannot show it."
    )
