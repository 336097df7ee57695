"""The page of a model on other data: the new domains beside those that the run was tested on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.metrics import PairAccuracy
from crosstail.metrics.calibration import Calibration
from crosstail.prediction.evaluate import Evaluated
from crosstail.prediction.predictor import Predictor
from crosstail.reports.document import html
from crosstail.reports.document.model import Block, Card, Cards, Code, Document, Heading, Table, Text, bullets
from crosstail.reports.run.answers import below, clearly_worse, pair_name, tested_pairs, tone
from crosstail.reports.run.certainty_elsewhere import certainty_elsewhere, suffix
from crosstail.reports.run.confusions import confusion_blocks
from crosstail.reports.run.failing import pair_map, worst_pairs
from crosstail.reports.run.model_card import accuracy_table, intervals_note
from crosstail.reports.run.reported import ReportedRun
from crosstail.reports.run.tables import pair_table, tracks_note
from crosstail.reports.wording import interval, listing, number, percent, sentence, several, worst_pair
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import KnownDomain, RunResult, SplitAccuracy, pooled

OLD, HELD_OUT = "own test set", "held-out data"


def label_of(found: Evaluated) -> str:
    """Whether the run has tested none, some or all of the samples, in words."""
    if not found.held_out:
        return "new data"
    return HELD_OUT if found.held_out == len(found.samples) else "tested data"


def write_evaluation(path: Path, predictor: Predictor, found: Evaluated, command: str) -> None:
    """Write the page of a run's model on other data, beside the run's own result."""
    new = on_new_data(predictor.folder.path, predictor.result, found, predictor.calibration)
    kept = Probabilities.load(predictor.folder)
    html.save(evaluation_document(new, predictor.result, found, command, kept), path)


def on_new_data(folder: Path, own: RunResult, found: Evaluated, calibration: Calibration | None = None) -> ReportedRun:
    """The run as if the new samples had been its test set; domains that it was not trained on have no counts."""
    domains = list(found.samples.domains)
    trained = dict(zip(own.domains, own.counts, strict=True))
    counts = np.array([trained.get(name, [0] * len(own.classes)) for name in domains])
    many, few = shot_thresholds(own.spec.dataset)

    def accuracy(pairs: PairAccuracy) -> SplitAccuracy:
        return SplitAccuracy.of(pairs, counts, many=many, few=few)

    none = accuracy(PairAccuracy(np.zeros_like(counts), np.zeros_like(counts)))
    result = msgspec.structs.replace(
        own,
        spec=replace(own.spec, protocol=RunSpec.protocol, unseen=None, folds=None, fold=None, stop_at=None),
        domains=domains,
        counts=counts.tolist(),
        validation=none,
        test=accuracy(found.accuracy),
        known=KnownDomain(validation=none, test=accuracy(found.known)) if found.known else None,
        estimate=None,
        data=DataFacts.of(found.samples),
    )
    said = found.probabilities
    return ReportedRun(folder, result, (), said.predictions(), found.samples, said, calibration)


def evaluation_document(
    new: ReportedRun, own: RunResult, found: Evaluated, command: str, kept: Probabilities | None = None
) -> Document:
    """Whether the model holds up on the new data, where it fails, how sure it is, what to do, and how it was tested.

    `kept` are the probabilities of the run's own test samples. If the samples are these, no comparison is shown.
    """
    pairs, few, what = pair_table([new.result]), shot_thresholds(own.spec.dataset)[1], label_of(found)
    if what == HELD_OUT:
        own, kept = msgspec.structs.replace(own, test=new.result.validation, estimate=None, known=None), None
    blocks: list[Block] = [
        Heading("Can I use it?"),
        *_usable(new.result, own, what),
        domain_table(new.result, own, what),
        Heading("Where does it fail?"),
        *pair_map(side_by_side(pairs, pair_table([own]), own, what), few),
        *confusion_blocks(new),
        *worst_pairs(pairs),
        *certainty_elsewhere(new, own, found, kept, what),
        Heading("What next?"),
        bullets(_next(new, pairs, own)),
        Heading("How was it tested?"),
        *_tested(new, found, command, what),
    ]
    return Document(f"{own.spec.method} on {what}: {found.samples.name}", blocks)


def _comparable(new: RunResult, own: RunResult) -> tuple[PairAccuracy, PairAccuracy]:
    """The accuracy on the new data, and that on the run's test set for the classes that both have."""
    now, before = pooled([new]), pooled([own])
    shared = now.totals.any(axis=0) & before.totals.any(axis=0)
    return now, before.only(np.broadcast_to(shared, before.totals.shape))


def _usable(new: RunResult, own: RunResult, what: str) -> Iterator[Block]:
    now, before = _comparable(new, own)
    ends, tested = now.interval() or (np.nan, np.nan), tested_pairs(pair_table([new]))
    assert now.pair_average is not None  # at least one sample counts
    where = f"On {several(int(now.totals.sum()), 'sample')} of {several(new_domains(new), 'domain')}"
    expected = f"{where}, {percent(now.pair_average)} % of the answers are right (95 % interval {_interval(ends)})"
    cards = [_card(what.capitalize(), now, "pair_average", f"{several(len(tested), 'pair')}, equally weighted")]
    if what == HELD_OUT:
        verdict = ". These are samples that the run was tested on."
    elif before.pair_average is None:
        verdict = ". The run was not tested on these classes, so there is nothing to compare with."
    else:
        was, difference = before.interval() or (np.nan, np.nan), 100 * (now.pair_average - before.pair_average)
        then = f", against {percent(before.pair_average)} % on the run's test set for the same classes"
        verdict = f"{then}: {_verdict(ends, was)}."
        cards.append(_card("The run's test set", before, "pair_average", "the same classes"))
        cards.append(Card("Difference", f"{number(difference, 1, '+')} points", _verdict(ends, was)))
    yield Text(f"{expected}{verdict} {clearly_worse(tested, 100 * now.pair_average)}", lead=True)
    yield Cards([*cards, _card("Worst pair", now, "worst_pair", worst_pair(now, new.domains, new.classes))])


def _card(label: str, accuracy: PairAccuracy, of: Literal["pair_average", "worst_pair"], what: str) -> Card:
    low, high = accuracy.interval(of) or (np.nan, np.nan)
    note = f"{what}; 95 % interval {_interval((low, high))}"
    return Card(label, f"{percent(getattr(accuracy, of))} %", note, tone({"low": 100 * low, "high": 100 * high}))


def _interval(ends: tuple[float, float]) -> str:
    return interval(100 * ends[0], 100 * ends[1])


def _verdict(now: tuple[float, float], before: tuple[float, float]) -> str:
    if now[1] < before[0]:
        return "clearly lower"
    return "clearly higher" if now[0] > before[1] else "the intervals overlap"


def new_domains(new: RunResult) -> int:
    """The number of domains with samples that count."""
    return sum(bool(np.sum(row)) for row in new.test.totals)


def domain_table(new: RunResult, own: RunResult, label: str) -> Table:
    """One row per domain of the data and of the run's test set: samples, accuracy, interval, mean over classes."""
    rows: list[list[str]] = []
    for result, what in ((new, label), (own, OLD)):
        accuracy = pooled([result])
        for d, name in enumerate(result.domains):
            total = int(accuracy.totals[d].sum())
            if not total:
                continue
            ends, own_classes = accuracy.interval(d) or (np.nan, np.nan), accuracy.totals[d] > 0
            mean = float(accuracy.matrix[d][own_classes].mean())
            trained = "yes" if name in own.domains and np.sum(own.counts[own.domains.index(name)]) else "no"
            accuracies = [percent(accuracy.domains[d]), _interval(ends), percent(mean)]
            rows.append([name, what, trained, f"{total:,}", *accuracies])
    header = ["domain", "tested on", "trained on it", "samples", "accuracy, %", "95 % interval", "class mean, %"]
    note = "Accuracy is the share of correct samples, class mean the mean accuracy of the classes."
    old = [row[1] for row in rows].count(OLD)
    emphasised = {(i, j) for i in range(len(rows) - old) for j in range(len(header)) if old}
    title = f"{label.capitalize()} beside the run's test set" if old else f"{label.capitalize()} by domain"
    return Table(header=header, rows=rows, title=title, note=note, emphasised=emphasised)


def side_by_side(new: pd.DataFrame, old: pd.DataFrame, own: RunResult, label: str) -> pd.DataFrame:
    """The pairs of the data, then those of the run's test set; only pairs of trained domains are rare or not."""
    known = new["domain"].isin(own.domains)
    new = new[new.groupby("domain")["tested"].transform("sum") > 0]
    new, old = new.assign(shot=new["shot"].where(known, "")), old[old.groupby("domain")["tested"].transform("sum") > 0]
    named = new["domain"] + suffix(label) if len(old) else new["domain"]
    return pd.concat([new.assign(domain=named), old], ignore_index=True)


def _next(new: ReportedRun, pairs: pd.DataFrame, own: RunResult) -> Iterator[str]:
    tested = tested_pairs(pairs)
    weak = below(tested, float(tested["accuracy"].mean()))
    if len(weak):
        names = [pair_name(row) for row in weak.to_dict("records")]
        yield f"Label samples of the pairs that are clearly worse, and train again with them: {listing(names, 5)}."
    now, before = _comparable(new.result, own)
    ends, was = now.interval(), before.interval()
    if ends and was and ends[1] < was[0]:
        yield "The model does not carry over: add samples of these domains to the training data, and train again."
    untested = len(pairs) - len(tested)
    if untested:
        yield f"{untested:,} of {several(len(pairs), 'pair')} of these domains and the model's classes were not tested."
    if new.result.known is None and own.known is not None:
        yield "The model uses the domain where it is known, but it was trained on none of these."
    yield "Where this accuracy is enough, `crosstail predict` classifies files from these domains."


def _tested(new: ReportedRun, found: Evaluated, command: str, what: str) -> Iterator[Block]:
    notes = [sentence(note) for note in new.result.data.notes]
    if str(found.left_out):
        notes.insert(0, f"Left out: {found.left_out}.")
    where = f"The model of {new.folder}, whose own page is {new.folder / 'report.html'}."
    yield bullets([where, *notes])
    yield Heading("All metrics", 3)
    about = f"Accuracy on the {what}, in %.", tracks_note([new.result]), intervals_note([new.result])
    yield Text(" ".join(filter(None, about)))
    yield accuracy_table([new.result])
    yield Heading("How to repeat it", 3)
    yield Code(command)
