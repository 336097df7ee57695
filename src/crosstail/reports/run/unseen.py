"""Each domain unseen in turn: what to expect of a new domain, and each domain when it is seen and when it is not."""

from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np
import pandas as pd

from crosstail.metrics._comparisons import prediction_interval
from crosstail.reports.document.model import Block, Card, Cards, Columns, Heading, Table, Text, records_table
from crosstail.reports.run.tables import DISTANCE_COLUMNS, DISTANCE_NOTE, fold_table
from crosstail.reports.run.verdict import ends as ends_of
from crosstail.reports.wording import both_ends, interval, number, several, shown
from crosstail.training.result import RunResult

HOW = (
    "This is a 90 % prediction interval for the accuracy on one more domain: mean ± t · s · √(1 + 1/n) over the n "
    "domains that were left out in turn, with their standard deviation s and Student's t of n − 1 degrees of freedom. "
    "It assumes that a new domain differs from these as they differ from each other."
)
FEW = "With fewer than three domains left out, their spread says nothing about a new one."


def seen_table(results: Sequence[RunResult]) -> pd.DataFrame:
    """One row per domain: accuracy in % when it was unseen, with its 95 % interval, when it was seen, and the loss.

    Seen is the accuracy on the validation samples of the domain, over the runs that were trained on the domain.
    """
    table = fold_table(results)
    table = table[table["unseen"] != "mean"].rename(columns={"unseen": "domain", "accuracy": "unseen"})
    domains, seen = results[0].domains, []
    for name in table["domain"]:
        d = domains.index(name)
        others = [result.validation.pairs() for result in results if result.spec.unseen != name]
        hits, totals = (sum(int(getattr(of, what)[d].sum()) for of in others) for what in ("hits", "totals"))
        seen.append(100 * hits / totals if totals else np.nan)
    return table.assign(seen=seen, loss=np.array(seen) - table["unseen"]).reset_index(drop=True)


def expected(table: pd.DataFrame) -> tuple[float, float] | None:
    """The prediction interval for a new domain in %, from `seen_table`."""
    ends = prediction_interval(table["unseen"].dropna() / 100)
    return None if ends is None else (100 * ends[0], 100 * ends[1])


def expectation(table: pd.DataFrame) -> str:
    """What to expect on a new domain, in a sentence or two, from `seen_table`."""
    known, ends = table["unseen"].dropna(), expected(table)
    left_out = f"The {several(len(known), 'domain')} left out in turn had {interval(known.min(), known.max())} %."
    return f"On a new domain, expect {_whole(ends)} %. {left_out}" if ends else f"{left_out} {FEW}"


def unseen_blocks(results: Sequence[RunResult]) -> Iterator[Block]:
    """What to expect on a new domain, and seen beside unseen."""
    table = seen_table(results)
    known, ends = table[table["unseen"].notna()], expected(table)
    if known.empty:
        yield Text("There are no test samples, so the accuracy is unknown.", lead=True)
        return
    worst = known.iloc[int(known["unseen"].argmin())]
    yield Text(expectation(table), lead=True)
    loss, lost = known["loss"], "against the same domains when seen"
    if loss.notna().any():
        lost += f"; most on {known.iloc[int(loss.argmax())]['domain']}: {number(loss.max())}"
    cards = [Card("a new domain", f"{_whole(ends)} %", "90 % prediction interval")] if ends else []
    cards += [
        Card("mean of unseen domains", f"{number(known['unseen'].mean())} %", f"of {several(len(known), 'domain')}"),
        Card("worst unseen domain", f"{number(worst['unseen'])} %", f"{worst['domain']}, {ends_of(worst)}"),
        Card("lost when unseen", f"{number(loss.mean())} points", lost),
    ]
    yield Cards(cards)
    if ends:
        yield Text(HOW, dim=True)
    yield Heading("Seen beside unseen", 3)
    yield Text(
        "Each row is a domain. Unseen: the run that left it out was trained on 80 % of the other domains, selected on "
        "the other 20 %, and tested on 80 % of this domain, as in DomainBed. Seen: the runs that were trained on it, "
        "on its validation samples, which they were also selected by. A run's folder has a page with its "
        "learning curves."
    )
    yield _table(table)


def _whole(ends: tuple[float, float] | None) -> str:
    """Rounded outwards, because the ends are uncertain themselves."""
    return "" if ends is None else f"{np.floor(ends[0]):.0f} to {np.ceil(ends[1]):.0f}"


def _table(table: pd.DataFrame) -> Table:
    records = [*table.to_dict("records"), {"domain": "mean", **table.mean(numeric_only=True), "low": np.nan}]
    columns: Columns = {"domain": itemgetter("domain"), "unseen, %": shown("unseen"), "95 % interval": both_ends}
    columns |= {"class mean, unseen": shown("class mean"), "seen, %": shown("seen"), "lost, points": shown("loss")}
    columns |= {"validation, %": shown("validation"), **DISTANCE_COLUMNS}
    note = f"Accuracy is the share of correct samples, class mean the mean accuracy of the classes. {DISTANCE_NOTE}"
    return records_table(records, columns, {len(table)}, note=note)
