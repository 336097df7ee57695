"""What must not be missed: the recall of the critical classes at each site, which every page shows first."""

from collections.abc import Iterator
from operator import itemgetter

import pandas as pd

from crosstail.reports.document.model import Block, Columns, Heading, Table, records_table
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.two_questions import Questions
from crosstail.reports.wording import TRACKS, both_ends, shown

CRITICAL = "What must not be missed"


def critical_table(tested: Tested, questions: Questions | None = None) -> pd.DataFrame:
    """One row per critical class and site with test samples of it: as `Tested.pairs`, with the recall by `--prior`."""
    pairs = tested.pairs
    if questions is not None:
        pairs = pairs.assign(informed=100 * questions.informed.matrix.ravel())
    own = pairs[pairs["class"].isin(tested.critical) & (pairs["tested"] > 0)]
    return own.sort_values("class", key=lambda names: names.map(list(tested.critical).index), kind="stable")


def critical_blocks(tested: Tested, questions: Questions | None = None) -> Iterator[Block]:
    """The section, if a class is critical."""
    if tested.critical:
        yield Heading(title_of(tested))
        yield critical_summary(tested, questions)


def title_of(tested: Tested) -> str:
    """The title of the section."""
    return f"{CRITICAL}: {', '.join(tested.critical)}"


def critical_summary(tested: Tested, questions: Questions | None = None, title: str = "") -> Table:
    """The recall of the critical classes at each site, with intervals."""
    found = critical_table(tested, questions)
    site = (lambda row: f"{row['class']}, {row['domain']}") if len(tested.critical) > 1 else itemgetter("domain")
    columns: Columns = {
        "site": site,
        "found": lambda row: f"{row['hits']:,} of {row['tested']:,}",
        "recall, %": shown("accuracy"),
    }
    columns |= {"95 % interval": both_ends}
    columns |= {f"{TRACKS[1]}, %": shown("known")} if "known" in found else {}
    untested = [name for name in tested.critical if name not in set(found["class"])]
    notes = [f"There are no test samples of {', '.join(untested)}."] if untested else []
    if questions is not None:
        columns["--prior, %"] = shown("informed")
        notes.append(
            f"--prior: recall of answers that take into account how frequent classes are (`{questions.option}`)."
        )
    return records_table(found.to_dict("records"), columns, title=title, note=" ".join(notes))
