"""The page of a race: which methods are tied and which are worse, and the leaderboard."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from crosstail.data import data_name
from crosstail.metrics import find
from crosstail.reports.charts import INK, PALETTE, names, tip
from crosstail.reports.compare.significance import AGAIN, SEARCHED, THESE
from crosstail.reports.document import html
from crosstail.reports.document.model import (
    Block,
    Chart,
    Code,
    Document,
    Heading,
    Item,
    Items,
    Table,
    Text,
    bullets,
)
from crosstail.reports.vega_lite import Drawing, draw, either, field, layer
from crosstail.reports.wording import TRACKS, interval, number, selected_on, several
from crosstail.sweeps.race_result import RaceResult, Standing

NAMES = TRACKS[1], "known"  # of the column with the domain known, and where there is little room
TIED = (
    "Worse: behind the first on the test set at p < 0.05, corrected for the number of methods. Tied: there are too few "
    "test samples or seeds to show a difference. The same: right on exactly the same test samples, with every seed. "
    "Intervals are of one comparison each: that of a tied method may leave out 0."
)
TOLD = (
    "Known: test accuracy when the method is told the domain; a method that ignores it has the same. All else is with "
    "the domain unknown."
)


def board_table(board: Sequence[Standing]) -> pd.DataFrame:
    """One row per method in the order of the leaderboard: accuracies in %, the lead of the first in points."""
    rows = []
    for place, row in enumerate(board, 1):
        facts = {"place": place, "method": row.method, "family": row.family, "level": row.level}
        facts |= {"seconds": row.seconds, "validation": find(row.selected_on).scale * row.validation}
        shares = {name: getattr(row, name) for name in ("test", "low", "high", "worst_domain")}
        shares["known"] = row.test if row.known is None else row.known
        shares["deviation"] = float("nan") if row.deviation is None else row.deviation
        lead = [row.lead.estimate, row.lead.low, row.lead.high] if row.lead else [0.0] * 3
        shares |= dict(zip(("lead", "lead_low", "lead_high"), lead, strict=True))
        rows.append(facts | {name: 100 * value for name, value in shares.items()})
    return pd.DataFrame(rows)


def leaderboard(board: Sequence[Standing], *, narrow: bool = False) -> Table:
    """The leaderboard as text; `narrow` fits 80 columns. Methods behind by more than the noise are faint."""
    known, on = any(row.known not in (None, row.test) for row in board), board[0].selected_on
    header = ["method", "val", "test", "95 % interval", "±", *[NAMES[narrow]] * known, "lead of the first"]
    header += ["s", "worst domain"] * (not narrow)
    rows = []
    for row in board_table(board).to_dict("records"):
        ends = interval(row["lead_low"], row["lead_high"], "+z")
        lead = f"{row['lead']:+z.1f} ({ends})" if ends else "the same" if row["place"] > 1 else ""
        deviation = "" if row["deviation"] != row["deviation"] else number(row["deviation"])
        validation = find(on).shown(row["validation"] / find(on).scale, unit=False)
        cells = [row["method"], validation, number(row["test"]), interval(row["low"], row["high"])]
        cells += [deviation, *[number(row["known"])] * known, lead, number(row["seconds"]), number(row["worst_domain"])]
        rows.append(cells[: len(header)])
    return Table(
        header=header,
        rows=rows,
        faint={i for i, row in enumerate(board) if not row.level},
        note=f"Best {selected_on(on)} on validation first; accuracies in %"
        f"{', of samples as they come' * find(on).frequent}, ± the standard deviation over the seeds. Lead: by how "
        "many points the first is ahead on the test set."
        + " Seconds: mean of one run, which depends on machine load." * (not narrow)
        + f" {TOLD}" * known,
    )


def groups(board: Sequence[Standing]) -> list[tuple[str, pd.DataFrame]]:
    """The first; the methods that are the same as it, tied with it, and worse: a name and the rows of each group."""
    table = board_table(board)
    same = pd.Series([bool(row.lead and row.lead.same) for row in board])
    first = table["place"] == 1
    parts = {
        "first": first,
        "the same": same & table["level"],
        "tied": table["level"] & ~same & ~first,
        "worse": ~table["level"],
    }
    return [(name, table[own]) for name, own in parts.items() if own.any()]


def headline(board: Sequence[Standing]) -> str:
    """How many methods are tied with the first, and how many are worse."""
    found = {name: len(own) for name, own in groups(board)}
    same = f", {found['the same']} the same" if "the same" in found else ""
    return f"{found.get('tied', 0)} tied with {board[0].method}{same}, {found.get('worse', 0)} worse"


def group_items(board: Sequence[Standing]) -> Items:
    """The groups with the range of each metric."""
    items, metric = [], find(board[0].selected_on)
    for name, own in groups(board):
        ends = [metric.shown(end / metric.scale, unit=False) for end in own["validation"].agg(["min", "max"])]
        parts = [f"validation {' to '.join(dict.fromkeys(ends))}{metric.unit}", f"test {_range(own['test'])} %"]
        if name in ("tied", "worse"):
            parts.append(f"{_range(own['lead'], '+z')} points behind the first")
        title = name.capitalize() if name == "first" else f"{len(own)} {name}"
        items.append(Item(f"{title}: {', '.join(own['method'])}", "; ".join(parts)))
    return Items(items)


def _range(values: pd.Series, sign: str = "") -> str:
    low, high = (number(value, 1, sign) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def behind_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row for all methods that are tied with the first, and one for each that is worse: points behind the first."""
    tied, worse = table[table["level"]], table[~table["level"]]
    shown = worse[["method", "family", "lead", "lead_low", "lead_high"]].assign(first=worse["lead"], last=worse["lead"])
    if len(tied) == 1:
        return shown.reset_index(drop=True)
    row: dict[str, Any] = {"method": f"first and {len(tied) - 1} tied", "family": ""}
    row |= {"lead": 0.0, "lead_low": tied["lead_low"].min(), "lead_high": tied["lead_high"].max()}
    row |= {"first": tied["lead"].min(), "last": tied["lead"].max()}
    return pd.concat([pd.DataFrame([row]), shown], ignore_index=True)


def behind_chart(table: pd.DataFrame) -> Drawing:
    """Points behind the first on the same test samples, with 95 % intervals; tied methods share one bar."""
    shown = behind_table(table)

    tips = {"lead": "points behind the first", "lead_low": "95 % interval from", "lead_high": "to"}
    base = draw(shown).encode(
        y=names("method", labelLimit=160, labelOverlap=False),
        color=either("datum.family", PALETTE[0], INK),
        tooltip=["method:N", "family:N", *(tip(name, ".1f", words) for name, words in tips.items())],
    )
    x = field("lead_low:Q", title=f"points behind {table['method'][0]} on the test set", scale={"nice": False})
    marks = base.where("datum.family").mark("point", size=70, filled=True, opacity=1)
    equal = draw(pd.DataFrame({"equal": [0]})).mark("rule", strokeDash=[4, 4], color=INK)
    return layer(
        equal.encode(x="equal:Q"),
        base.mark("rule", strokeWidth=2).encode(x=x, x2="lead_high"),
        base.where("!datum.family").mark("bar", height=10).encode(x="first:Q", x2="last"),
        marks.encode(x="lead:Q"),
        width="container",
        height={"step": 26},
    )


def write_page(race: RaceResult, out: Path) -> None:
    """Write OUT/report.html."""
    title = f"Which method for {data_name(race.dataset)}?"
    html.save(Document(title, list(_blocks(race, out))), out / "report.html")


def _blocks(race: RaceResult, out: Path) -> Iterator[Block]:
    board = race.leaderboard
    table = board_table(board)
    some, worse = int(table["level"].sum()) > 1, not table["level"].all()
    yield Text(race.recommendation, lead=True)
    yield Text(expectation(race))
    if len(board) > 1:
        yield Heading(headline(board))
        yield group_items(board)
        yield Text(TIED, dim=True)
    if worse:
        note = (
            f"{board[0].method} against the others on the same {race.samples:,} test samples: samples that are hard "
            "for both cancel out. Lines are 95 % intervals" + ("; the bar spans all tied methods." if some else ".")
        )
        alternative = "Dots with intervals: points by which each method is behind the first"
        yield Chart("behind", "How far the others are behind", behind_chart(table), alternative, note)
    yield replace(leaderboard(board), title="Finalists" if race.stopped else "All methods")
    if race.stopped:
        rows = [[one.method, str(one.trials), find(board[0].selected_on).shown(one.validation)] for one in race.stopped]
        note = "After each trial, the worse half on validation stops until few are left, except erm and frozen:blend."
        yield Heading(stopped_early(race), closed=True)
        yield Table(header=["method", "trials", "best on validation"], rows=rows, note=note)
    if race.left_out:
        yield Heading("Left out")
        yield bullets(race.left_out.values())
    if race.notes:
        yield Heading("Notes")
        yield bullets(race.notes)
    if race.failed:
        rows = [[failed.method, failed.run, failed.error] for failed in race.failed]
        yield Table(title="Failed runs", header=["method", "run", "error"], rows=rows, words_last=True)
    yield Heading("Method")
    yield from _method(race)
    yield Heading("Next steps")
    yield Text(race.next_text)
    yield Code(race.next)
    yield Text("`crosstail fit` trains another method that is named as its --algorithm.")
    if race.folds is None:
        yield Text(f"{out / 'best'} is the run of {race.use} in this race, with its page and its model card.")


def expectation(race: RaceResult) -> str:
    """Why accuracies differ between validation and test, and which of them to expect."""
    of_validation, of_test = race.pairs
    return (
        "Expect the accuracy on test. Validation chose methods, trials and evaluations, so its figures tend to be too "
        f"high, and they are from {race.validation_samples:,} samples of {several(of_validation, 'pair')}, the test "
        f"figures from {race.samples:,} samples of {several(of_test, 'pair')}."
    )


def stopped_early(race: RaceResult) -> str:
    """One line on the methods that were stopped."""
    return f"{several(len(race.stopped), 'method')} stopped early, on validation"


def _method(race: RaceResult) -> Iterator[Text]:
    embedded = f"Each image was embedded once by {race.backbone}. " if race.tune == "none" else ""
    folds = f" on each of {race.folds} folds, which together test every sample once" if race.folds else ""
    seeds = f" and run with {race.seeds} seeds, whose accuracies are averaged" if race.seeds > 1 else ""
    steps, chosen = (
        f"{race.steps:,} steps with {race.batch_size} samples per domain{folds}, ",
        "default hyperparameters",
    )
    if race.trials > 1:
        steps = f"{'up to ' * bool(race.stopped)}{race.trials:,} trials of {steps}"
        chosen = "the first with default hyperparameters, the others random; the best on validation was chosen"
    yield Text(
        f"{embedded}Each method trained the same two-layer network on the vectors (frozen: fitted a classifier): "
        f"{steps}{chosen}{seeds}. Methods are ranked by {selected_on(race.leaderboard[0].selected_on)} on validation; "
        "ties go to the cheapest: fewest passes over a batch per step, then fewest stages that are trained, then "
        "fewest hyperparameters to search. The cheapest method that is not significantly behind the first on the "
        "validation samples is recommended. The test set has no influence on either."
    )
    again = race.seeds > 1
    about, over = (AGAIN, "seeds and test samples") if again else (f"{THESE}, not trained again", "test samples")
    yield Text(
        "The interval of an accuracy is that of these models on other test samples. The lead of the first, its "
        f"interval and whether a method is worse are about {about}: a t test over {over}, with p-values corrected for "
        f"the number of methods by Holm's method. {SEARCHED} Tied does not mean equal."
    )
