"""The page of a model on other data: the new domains beside the run's own test set."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from crosstail.prediction.evaluate import Evaluated
from crosstail.prediction.predictor import Predictor
from crosstail.reports.document.model import Block, Card, Cards, Code, Document, Heading, Table, Text, bullets
from crosstail.reports.run.certainty_elsewhere import OLD, certainty_elsewhere, reliability_elsewhere, suffix
from crosstail.reports.run.confusions import confusion_blocks
from crosstail.reports.run.critical import critical_blocks, flags_of_evaluated
from crosstail.reports.run.model_card import accuracy_table, intervals_note
from crosstail.reports.run.tables import headline
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.two_questions import Questions, card_of, question_blocks
from crosstail.reports.run.verdict import below, ends, lowest_pairs, metric_card, pair_name, tested_pairs
from crosstail.reports.run.worst_pairs import pair_map, worst_pairs
from crosstail.reports.wording import interval, listing, number, percent, sentence, several
from crosstail.training.data_facts import DataFacts
from crosstail.training.result import RunResult

HELD_OUT = "held-out data"


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
    new = replace(Tested.of_answers(found.answers), critical=list(result.critical))
    own, kept = Tested.of_results([result]), predictor.run.held_out and predictor.run.held_out.test
    if what == HELD_OUT:
        own, kept = replace(own, accuracy=own.accuracy.only(np.zeros(own.counts.shape, bool)), informed=None), None
    images = len(result.input_shape) == 3
    every = reliability_elsewhere(found.answers, predictor.calibration, kept or None, what)
    blocks: list[Block] = [
        *critical_blocks(new, questions, flags_of_evaluated(found)),
        Heading("Can I use it?"),
        *_usable(new, own, what, questions),
        domain_table(new, own, what),
        *question_blocks(questions),
        Heading("Where does it fail?"),
        *pair_map(side_by_side(new, own, what), own.shots[1]),
        *confusion_blocks(replace(found.answers, row=None), found.samples, images=images),
        *worst_pairs(new),
        *certainty_elsewhere(found, predictor.calibration, kept or None, what, every),
        Heading("What next?"),
        bullets(_next(new, own, result)),
        Heading("How was it tested?", closed=True),
        *_tested(predictor, new, found, command, what),
        Heading("Metrics of the probabilities", 3),
        every,
    ]
    return Document(f"{result.spec.method} on {what}: {found.samples.name}", blocks)


def _headlines(new: Tested, own: Tested) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metrics on the new data, and on the run's test set for the classes that both have."""
    shared = new.accuracy.totals.any(axis=0) & own.accuracy.totals.any(axis=0)
    before = replace(own, accuracy=own.accuracy.only(np.broadcast_to(shared, own.counts.shape)))
    return headline(new), headline(before)


def _usable(new: Tested, own: Tested, what: str, questions: Questions | None) -> Iterator[Block]:
    now, before = _headlines(new, own)
    average, was = now["pair average"], before.get("pair average")
    domains = several(int(new.accuracy.totals.any(axis=1).sum()), "domain")
    where = f"On {several(int(new.accuracy.totals.sum()), 'sample')} of {domains}, with every pair weighted equally"
    expected = f"{where}, {number(average['value'])} % of the answers are right ({ends(average)})"
    cards = [metric_card(what.capitalize(), average)]
    if what == HELD_OUT:
        verdict = ". These are samples that the run was tested on."
    elif was is None:
        verdict = ". The run was not tested on these classes, so there is nothing to compare with."
    else:
        then = f", against {number(was['value'])} % on the run's test set for the same classes"
        verdict = f"{then}: {_verdict(average, was)}."
        difference = f"{number(average['value'] - was['value'], 1, '+')} points"
        cards.append(metric_card("The run's test set", was | {"what": "the same classes"}))
        cards.append(Card("Difference", difference, _verdict(average, was)))
    lowest = lowest_pairs(tested_pairs(new.pairs), average["value"], len(new.classes))
    yield Text(f"{expected}{verdict} {lowest}", lead=True)
    cards += [card_of(questions)] if questions else []
    yield Cards([*cards, metric_card("Worst pair", now["worst pair"])])


def _verdict(now: dict[str, float], before: dict[str, float]) -> str:
    if now["high"] < before["low"]:
        return "clearly lower"
    return "clearly higher" if now["low"] > before["high"] else "the intervals overlap"


def domain_table(new: Tested, own: Tested, label: str) -> Table:
    """One row per domain of the data and of the run's test set: samples, mean accuracy of the classes, interval."""
    rows: list[list[str]] = []
    for tested, what in ((new, label), (own, OLD)):
        accuracy = tested.accuracy
        for d, name in enumerate(tested.domains):
            total = int(accuracy.totals[d].sum())
            if not total:
                continue
            low, high = accuracy.by_class().interval(d) or (np.nan, np.nan)
            trained = "yes" if name in own.domains and np.sum(own.counts[own.domains.index(name)]) else "no"
            accuracies = [percent(accuracy.by_class().domains[d]), interval(100 * low, 100 * high)]
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
    now, before = (of.get("pair average") for of in _headlines(new, own))
    if now and before and now["high"] < before["low"]:
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
