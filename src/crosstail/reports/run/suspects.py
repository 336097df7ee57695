"""Held-out samples whose label is probably wrong: on the page of a run, in an audit, and in a model card."""

import shlex
from collections.abc import Iterator

import numpy as np
import pandas as pd

from crosstail.data.spec import READ
from crosstail.metrics import Answers
from crosstail.metrics._link import training_shares, with_prior
from crosstail.prediction.label_errors import worth_a_look
from crosstail.reports.document.model import Block, Gallery, Heading, Picture, Table, Text, bullets
from crosstail.reports.run.command import options
from crosstail.reports.wording import number
from crosstail.training.run import Run

SHOWN = 12  # label errors that are shown
COUNTED = 10  # pairs in the table of a page
PAIRS, OF_PAIR = 20, 6  # pairs of an audit, and label errors that are shown of each


def suspect_table(run: Run) -> pd.DataFrame:
    """The samples that are worth a look, most suspicious first: row, path or number, domain, label, what it seems to
    be, the probability of the label, and the chance that the label is wrong.

    Probabilities are corrected to the prevalence of every site: a balanced model takes many samples of a frequent class
    for a rare one, and that says nothing about their labels.
    """
    kept, given, result = _held_out(run), run.calibration, run.result
    columns = ["row", "sample", "domain", "label", "seems", "probability", "chance"]
    if kept is None or given is None or not len(kept) or kept.row is None or kept.told.log_p is None:
        return pd.DataFrame(columns=columns)
    shares = training_shares(np.array(result.counts))[kept.domain]
    found = worth_a_look(with_prior(given.prevalence(kept.told.log_p), shares), kept.y, shares)
    rows = kept.row[found["row"]]
    places = run.dataset.names(rows, "sample") if run.dataset else [f"sample {row}" for row in rows]
    domains, classes = np.array(result.domains, object), np.array(result.classes, object)
    names = domains[kept.domain[found["row"]]], classes[kept.y[found["row"]]], classes[found["seems"]]
    values = rows, places, *names, found["probability"], found["chance"]
    return pd.DataFrame(dict(zip(columns, values, strict=True)))


def _held_out(run: Run) -> Answers | None:
    """The held-out samples that are in the run's data: others come from folds whose label profiles kept them."""
    every = None if run.held_out is None else run.held_out.every
    return every if every is None or every.row is None else every.keep(every.row < run.result.data.samples)


def suspects(run: Run, note: str = "") -> Iterator[Block]:
    """The most suspicious samples, and how many there are of each pair; the note says where to find the others."""
    table = suspect_table(run)
    if table.empty:
        yield from _none(run)
        return
    kept, pairs = _held_out(run), table.groupby(["domain", "label"], sort=False)
    assert kept is not None
    yield from _heading(run, table, "the most suspicious first")
    yield _shown(run, table.head(SHOWN), "label → what it seems to be")
    rows = []
    for (domain, label), own in sorted(pairs, key=lambda pair: -len(pair[1]))[:COUNTED]:
        d, c = run.result.domains.index(str(domain)), run.result.classes.index(str(label))
        held_out = int(np.sum((kept.domain == d) & (kept.y == c)))
        seems = own["seems"].value_counts()
        share = number(100 * len(own) / held_out, 0)
        most = f"{seems.index[0]} ({seems.iloc[0]:,})"
        rows.append([f"{domain} / {label}", f"{len(own):,}", f"{held_out:,}", share, most])
    header = ["pair", "suspicious", "held out", "%", "most often seems"]
    title = "By pair" if len(pairs) <= COUNTED else f"The {COUNTED} pairs with the most"
    note = note or f"More of each pair: {_audit(run)}"
    yield Table(header=header, rows=rows, title=title, note=note)


def suspects_by_pair(run: Run) -> Iterator[Block]:
    """The most suspicious samples of each pair, the pair with the most of them first."""
    table = suspect_table(run)
    if table.empty:
        yield from _none(run)
        return
    yield from _heading(run, table, "by pair, the most suspicious of each first; `--json` has all of them")
    pairs = sorted(table.groupby(["domain", "label"], sort=False), key=lambda pair: -len(pair[1]))
    for (domain, label), own in pairs[:PAIRS]:
        yield _shown(run, own.head(OF_PAIR), f"{domain} / {label}: {len(own):,}")
    if len(pairs) > PAIRS:
        yield Text(f"{len(pairs) - PAIRS:,} more pairs have some.", dim=True)


def label_error_note(run: Run) -> str:
    """How many held-out samples are probably mislabelled; empty if none are."""
    table = suspect_table(run)
    if table.empty:
        return ""
    return f"{_share(run, table)} may be labelled wrongly, {_expected(table)} of them are: {_audit(run)} lists them."


def _share(run: Run, table: pd.DataFrame) -> str:
    return f"{len(table):,} of {len(_held_out(run) or ()):,} held-out samples"


def _audit(run: Run) -> str:
    """The command that lists them."""
    spec = run.result.spec
    about = options(spec, only=(*READ, "labels", "data_seed"))
    line = ["crosstail", "audit", spec.dataset, *about, "--run", str(run.path), "--out", "label-errors.html"]
    return f"`{shlex.join(line)}`"


def _none(run: Run) -> Iterator[Block]:
    if run.calibration is None or not len(_held_out(run) or ()):
        return
    yield Heading("Probable label errors", 3)
    yield Text(
        "None to list: no held-out sample's label has a chance of one in three or more to be wrong. With few held-out "
        "samples, or a model that is often wrong, most wrong labels cannot be told from mistakes of the model."
    )


def _heading(run: Run, table: pd.DataFrame, order: str) -> Iterator[Block]:
    yield Heading("Probable label errors", 3)
    yield Text(
        f"{_share(run, table)} look as if they had another class: {order}. {_expected(table).capitalize()} of them are "
        "expected to be labelled wrongly; the others are mistakes of the model. Look before you correct a label."
    )


def _expected(table: pd.DataFrame) -> str:
    """The share that is expected to be labelled wrongly."""
    return f"about {number(100 * table['chance'].mean(), 0)} %"


def _shown(run: Run, table: pd.DataFrame, caption: str) -> Block:
    """Pictures of samples, or if there are none, a list of them."""
    pictures, lines = [], []
    for one in table.to_dict("records"):
        lines.append(f"{one['sample']}: labelled {one['label']}, seems {one['seems']} ({one['domain']})")
        if run.dataset is not None and run.dataset.kind.picture:
            try:
                pixels = run.dataset.x[int(one["row"])]
            except (OSError, ValueError):  # a file was removed or damaged since
                continue
            pictures.append(Picture(pixels, f"{one['label']} → {one['seems']}?", lines[-1], one["sample"]))
    return Gallery(caption, pictures) if len(pictures) == len(lines) else bullets(lines)
