"""The page of a model on other data: the new domains beside the run's own test set."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from crosstail.metrics import PairAccuracy
from crosstail.prediction.evaluate import Evaluated
from crosstail.prediction.predictor import Predictor
from crosstail.reports.document.model import Block, Card, Cards, Code, Document, Heading, Table, Text, bullets
from crosstail.reports.run.certainty_elsewhere import certainty_elsewhere, suffix
from crosstail.reports.run.confusions import confusion_blocks
from crosstail.reports.run.critical import critical_blocks
from crosstail.reports.run.model_card import accuracy_table, intervals_note
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.two_questions import Questions, card_of, question_blocks
from crosstail.reports.run.verdict import below, lowest_pairs, pair_name, tested_pairs, tone
from crosstail.reports.run.worst_pairs import pair_map, worst_pairs
from crosstail.reports.wording import interval, listing, number, percent, sentence, several, worst_pair
from crosstail.training.data_facts import DataFacts
from crosstail.training.result import RunResult

OLD, HELD_OUT = "own test set", "held-out data"


def label_of(found: Evaluated) -> str:
    """Whether the run has tested none, some or all of the samples, in words."""
    if not found.held_out:
        return "new data"
    return HELD_OUT if found.held_out == len(found.samples) else "tested data"


def evaluation_document(
    predictor: Predictor, found: Evaluated, command: str, questions: Questions | None = None
) -> Document:
    """Whether the model holds up on the new data, where it fails, how sure it is, what to do, and how it was tested.

    If the samples are from the run's own test set, no comparison is shown.
    """
    result, what = predictor.run.result, label_of(found)
    new = replace(Tested.of_answers(found.answers), critical=result.critical)
    own, kept = Tested.of_results([result]), predictor.run.held_out and predictor.run.held_out.test
    if what == HELD_OUT:
        own, kept = replace(own, accuracy=own.accuracy.only(np.zeros(own.counts.shape, bool)), informed=None), None
    images = len(result.input_shape) == 3
    blocks: list[Block] = [
        *critical_blocks(new, questions),
        Heading("Can I use it?"),
        *_usable(new, own, what, questions),
        domain_table(new, own, what),
        *question_blocks(questions),
        Heading("Where does it fail?"),
        *pair_map(side_by_side(new, own, what), own.shots[1]),
        *confusion_blocks(replace(found.answers, row=None), found.samples, images=images),
        *worst_pairs(new),
        *certainty_elsewhere(found, predictor.calibration, kept if kept else None, what),
        Heading("What next?"),
        bullets(_next(new, own, result)),
        Heading("How was it tested?"),
        *_tested(predictor, new, found, command, what),
    ]
    return Document(f"{result.spec.method} on {what}: {found.samples.name}", blocks)


def _comparable(new: Tested, own: Tested) -> tuple[PairAccuracy, PairAccuracy]:
    """The accuracy on the new data, and on the run's test set for the classes that both have."""
    now, before = new.accuracy, own.accuracy
    shared = now.totals.any(axis=0) & before.totals.any(axis=0)
    return now, before.only(np.broadcast_to(shared, before.totals.shape))


def _usable(new: Tested, own: Tested, what: str, questions: Questions | None) -> Iterator[Block]:
    now, before = _comparable(new, own)
    ends, tested = now.interval() or (np.nan, np.nan), tested_pairs(new.pairs)
    assert now.pair_average is not None  # at least one sample counts
    domains = several(int(now.totals.any(axis=1).sum()), "domain")
    where = f"On {several(int(now.totals.sum()), 'sample')} of {domains}, with every pair weighted equally"
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
    yield Text(f"{expected}{verdict} {lowest_pairs(tested, 100 * now.pair_average, len(new.classes))}", lead=True)
    cards += [card_of(questions)] if questions else []
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


def domain_table(new: Tested, own: Tested, label: str) -> Table:
    """One row per domain of the data and of the run's test set: samples, mean accuracy of the classes, interval."""
    rows: list[list[str]] = []
    for tested, what in ((new, label), (own, OLD)):
        accuracy = tested.accuracy
        for d, name in enumerate(tested.domains):
            total = int(accuracy.totals[d].sum())
            if not total:
                continue
            ends = accuracy.by_class().interval(d) or (np.nan, np.nan)
            trained = "yes" if name in own.domains and np.sum(own.counts[own.domains.index(name)]) else "no"
            accuracies = [percent(accuracy.by_class().domains[d]), _interval(ends)]
            rows.append([name, what, trained, f"{total:,}", *accuracies])
    header = ["domain", "tested on", "trained on it", "samples", "accuracy, %", "95 % interval"]
    note = "Accuracy is the mean over the classes of a domain."
    old = [row[1] for row in rows].count(OLD)
    emphasised = {(i, j) for i in range(len(rows) - old) for j in range(len(header)) if old}
    title = f"{label.capitalize()} beside the run's test set" if old else f"{label.capitalize()} by domain"
    return Table(header=header, rows=rows, title=title, note=note, emphasised=emphasised)


def side_by_side(data: Tested, own: Tested, label: str) -> pd.DataFrame:
    """The pairs of the data, then of the run's test set; only pairs of trained domains are rare or not."""
    new, old = data.pairs, own.pairs
    known = new["domain"].isin(own.domains)
    new = new[new.groupby("domain")["tested"].transform("sum") > 0]
    new, old = new.assign(shot=new["shot"].where(known, "")), old[old.groupby("domain")["tested"].transform("sum") > 0]
    named = new["domain"] + suffix(label) if len(old) else new["domain"]
    return pd.concat([new.assign(domain=named), old], ignore_index=True)


def _next(new: Tested, own: Tested, result: RunResult) -> Iterator[str]:
    tested = tested_pairs(new.pairs)
    weak = below(tested, float(tested["accuracy"].mean()))
    if len(weak):
        names = [pair_name(row) for row in weak.to_dict("records")]
        yield f"Label samples of the pairs that are clearly worse, and train again with them: {listing(names, 5)}."
    now, before = _comparable(new, own)
    ends, was = now.interval(), before.interval()
    if ends and was and ends[1] < was[0]:
        yield "The model does not carry over: add samples of these domains to the training data, and train again."
    untested = len(new.pairs) - len(tested)
    if untested:
        every = several(len(new.pairs), "pair")
        yield f"{untested:,} of {every} of these domains and the model's classes were not tested."
    if new.informed is None and result.known is not None:
        yield "The model uses the domain where it is known, but it was trained on none of these."
    yield "Where this accuracy is enough, `crosstail predict` classifies files from these domains."


def _tested(predictor: Predictor, new: Tested, found: Evaluated, command: str, what: str) -> Iterator[Block]:
    notes = [sentence(note) for note in DataFacts.of(found.samples).notes]
    if str(found.left_out):
        notes.insert(0, f"Left out: {found.left_out}.")
    run = predictor.run.path
    where = f"The model of {run}, whose own page is {run / 'report.html'}."
    yield bullets([where, *notes])
    yield Heading("All metrics", 3)
    about = f"Accuracy on the {what}, in %.", new.tracks_note, intervals_note(new.accuracy)
    yield Text(" ".join(filter(None, about)))
    yield accuracy_table(new)
    yield Heading("How to repeat it", 3)
    yield Code(command)
