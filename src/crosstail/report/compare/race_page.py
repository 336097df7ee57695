"""The leaderboard of a race: a table, two charts and a page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import altair as alt
import pandas as pd

from crosstail.report.charts import INK, PALETTE, colours, names, tip
from crosstail.report.document import html
from crosstail.report.document.model import Block, Chart, Code, Document, Heading, Table, Text, bullets
from crosstail.report.wording import TRACKS, interval, number
from crosstail.sweep.race import RaceResult, Standing
from crosstail.sweep.recommendation import start_with

# Colour-blind readers can tell these colours apart; small families share two of them.
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
NAMES = TRACKS[1], "known"  # of the column with the domain known, and where there is little room
TOLD = (
    "Known: test accuracy where the method is told the domain, the same as without if it ignores it; all else is with "
    "the domain unknown."
)


def board_table(board: Sequence[Standing]) -> pd.DataFrame:
    """One row per method in the order of the leaderboard: accuracies in %, the lead of the first in points."""
    rows = []
    for place, row in enumerate(board, 1):
        lead = [row.lead.estimate, row.lead.low, row.lead.high] if row.lead else [0.0] * 3
        values = {name: getattr(row, name) for name in ("validation", "test", "low", "high", "worst_domain")}
        values["known"] = row.test if row.known is None else row.known
        values |= dict(zip(("lead", "lead_low", "lead_high"), lead, strict=True))
        values["deviation"] = float("nan") if row.deviation is None else row.deviation
        facts = {"place": place, "method": row.method, "family": row.family if row.family in MARKS else "own"}
        facts |= {"level": row.level, "seconds": row.seconds}
        rows.append(facts | {name: 100 * value for name, value in values.items()})
    return pd.DataFrame(rows)


def leaderboard(board: Sequence[Standing], *, narrow: bool = False) -> Table:
    """The leaderboard as text; `narrow` fits 80 columns. Methods behind by more than the noise are faint."""
    known = any(row.known is not None for row in board)
    header = ["method", "val", "test", "95 % interval", "±", *[NAMES[narrow]] * known, "lead of the first", "s"]
    header += ["worst domain"] * (not narrow)
    rows = []
    for row in board_table(board).to_dict("records"):
        lead = f"{row['lead']:+z.1f} ({interval(row['lead_low'], row['lead_high'], '+z')})" if row["place"] > 1 else ""
        deviation = "" if row["deviation"] != row["deviation"] else number(row["deviation"])
        cells = [row["method"], number(row["validation"]), number(row["test"]), interval(row["low"], row["high"])]
        cells += [deviation, *[number(row["known"])] * known, lead, number(row["seconds"]), number(row["worst_domain"])]
        rows.append(cells[: len(header)])
    return Table(
        header=header,
        rows=rows,
        faint={i for i, row in enumerate(board) if not row.level},
        note="Best on validation first; accuracies in %, ± over the seeds. Lead: by how many points the first is ahead "
        "on the test set. Seconds: mean of one run, which depends on machine load." + (" " + TOLD) * known,
    )


def board_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Test accuracy with its interval, best on validation at the top; a grey tick is the validation accuracy.

    Methods behind the first by more than the noise are faint.
    """
    base, marks = _layers(table, table)
    scale = alt.Scale(zero=False, nice=False, padding=8)
    x = alt.X("low:Q", title="pair average, %", scale=scale, axis=alt.Axis(tickCount=8))
    intervals = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    validation = base.mark_tick(thickness=2, size=12).encode(x="validation:Q", color=alt.value(INK))
    return intervals + validation + marks.encode(x="test:Q")


def lead_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Lead of the first over each other method on the same test samples; the dashed line marks a tie."""
    base, marks = _layers(table[table["place"] > 1], table)
    title = f"points by which {table['method'][0]} is ahead on the test set"
    x = alt.X("lead_low:Q", title=title, scale=alt.Scale(nice=False, padding=8))
    equal = alt.Chart(pd.DataFrame({"equal": [0]})).mark_rule(strokeDash=[4, 4], color=INK).encode(x="equal:Q")
    return equal + base.mark_rule(strokeWidth=2).encode(x=x, x2="lead_high:Q") + marks.encode(x="lead:Q")


def _layers(shown: pd.DataFrame, table: pd.DataFrame) -> tuple[alt.Chart, alt.Chart]:
    """Methods down with the colours of their families, and the same with marks of their shapes."""
    tips = {"validation": "validation, %", "test": "test, %", "low": "95 % interval from", "high": "to"}
    tips |= {"lead": "points by which the first is ahead", "lead_low": "95 % interval from ", "lead_high": "to "}
    families = {family: mark for family, mark in MARKS.items() if family in set(table["family"])}
    colour_of = {family: colour for family, (colour, _) in families.items()}
    base = alt.Chart(shown, width="container", height=alt.Step(22)).encode(
        y=names(alt.Y, "method", labelLimit=130, labelOverlap=False),
        color=colours("family", colour_of, orient="bottom", columns=3, labelLimit=0),
        opacity=alt.condition("datum.level", alt.value(1), alt.value(0.35)),
        tooltip=["method:N", "family:N", *(tip(name, ".1f", words) for name, words in tips.items())],
    )
    scale = alt.Scale(domain=list(families), range=[shape for _, shape in families.values()])
    return base, base.mark_point(size=70, filled=True).encode(shape=alt.Shape("family:N", title=None, scale=scale))


def write_page(race: RaceResult, out: Path) -> None:
    """Write OUT/report.html."""
    title = f"Which method for {Path(race.dataset).name}?"
    html.save(Document(title, list(_blocks(race, out))), out / "report.html")


def _blocks(race: RaceResult, out: Path) -> Iterator[Block]:
    table = board_table(race.leaderboard)
    yield Text(race.recommendation)
    note = (
        "Best on validation (grey tick) first. Marks are test accuracies, averaged over all pairs, with 95 % "
        "intervals; they are faint for methods behind the first by more than the noise."
    )
    alternative = "Dots with intervals: test accuracy of each method, by rank"
    yield Chart("leaderboard", "Leaderboard", board_chart(table), alternative, note)
    if len(table) > 1:
        note = (
            f"{table['method'][0]} against each other method on the same {race.samples:,} test samples: samples that "
            "are hard for both cancel out. An interval that reaches the dashed line is compatible with a tie."
        )
        alternative = "Dots with intervals: lead of the first over each other method"
        yield Chart("lead", "Which differences are more than noise", lead_chart(table), alternative, note)
    yield replace(leaderboard(race.leaderboard), title="All metrics")
    if race.left_out:
        yield Heading("Left out")
        yield bullets(race.left_out.values())
    if race.failed:
        rows = [[failed.method, failed.run, failed.error] for failed in race.failed]
        yield Table(title="Failed runs", header=["method", "run", "error"], rows=rows, words_last=True)
    yield Heading("Method")
    yield from _method(race)
    yield Heading("Next steps")
    best = f" Its model in this race is {out / 'best'}." if race.folds is None else ""
    yield Text(f"Train {start_with(race.leaderboard).method} for longer, with the chosen hyperparameters:")
    yield Code(race.next)
    yield Text(f"Another --algorithm of this page does the same for that one.{best}")


def _method(race: RaceResult) -> Iterator[Text]:
    embedded = f"Each image was embedded once by {race.backbone}. " if race.freeze else ""
    folds = f" on each of {race.folds} folds, which together test every sample once" if race.folds else ""
    seeds = f" and run with {race.seeds} seeds, whose accuracies are averaged" if race.seeds > 1 else ""
    yield Text(
        f"{embedded}Each method trained the same two-layer network on the vectors (frozen: fitted a classifier), "
        f"{race.trials} times for "
        f"{race.steps:,} steps with {race.batch_size} samples per domain{folds}: once with its default "
        f"hyperparameters, then with random ones. The trial that is best on validation was chosen{seeds}. Methods are "
        "ranked by validation accuracy; ties go to the cheapest: fewest passes over a batch per step, then fewest "
        "stages that are trained, then fewest hyperparameters to search. The test set has no influence on the ranking."
    )
    yield Text(
        "Intervals reflect the sampling of test samples"
        + (" and cover those of all seeds. " if race.seeds > 1 else ". ")
        + "They are not corrected for multiple comparisons: of twenty methods that are equally good, about one will "
        "appear to be behind. A lead within the noise does not mean that there is no difference, only that the test "
        "set is too small to show it."
    )
