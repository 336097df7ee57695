"""Where the page of a run begins and ends: whether to use the model, and what to do next."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from crosstail.data import as_inputs, protocols
from crosstail.metrics import FEW_TESTS
from crosstail.prediction.critical import critical_words
from crosstail.prediction.export import suggested_suffix
from crosstail.reports.document.model import Block, Card, Cards, Code, Text, bullets
from crosstail.reports.run.command import export_words, options, short_command, words
from crosstail.reports.run.tables import headline
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.two_questions import Questions, card_of, question_blocks
from crosstail.reports.wording import estimate_note, has, interval, listing, number, several
from crosstail.training.resolve import ON_ACTIVATIONS, SECOND_STAGE
from crosstail.training.result import RunResult

BAD, WEAK, GOOD = 50, 80, 90  # accuracy in %
FOLDS = 5
CARDS = {
    "pair average": "Average over pairs",
    "worst pair": "Worst pair",
    "worst domain": "Worst domain",
    "few-shot pairs": "Few-shot pairs",
    "zero-shot pairs": "Zero-shot pairs",
}


def usable(tested: Tested, results: Sequence[RunResult] = (), questions: Questions | None = None) -> Iterator[Block]:
    """How accurate the model is, where it is clearly worse, and what is not known; `results` if it is of runs."""
    if results and (column := results[0].data.leaks):
        how = f"Train again with --column {shlex.quote(f'group={column}')}"
        yield Text(f"Test samples share their {column} with training samples, so the accuracy is inflated. {how}.")
    refit = estimate_note(results[0]) if results else ""
    metrics = headline(tested)
    if "pair average" not in metrics:
        yield Text(refit or "There are no test samples, so the accuracy is unknown.", lead=True)
        return
    average = metrics["pair average"]
    where = "Over all (domain, class) pairs, each weighted equally,"
    if tested.unseen and len(results) == 1:
        where = f"On {tested.unseen[0]}, a domain that the model was not trained on, with every class weighted equally,"
    expected = f"{where} {number(average['value'])} % of the answers are right ({ends(average)})."
    worse = lowest_pairs(tested_pairs(tested.pairs), average["value"], len(tested.classes))
    unknown = "How it does on a domain that it was not trained on was not measured."
    yield Text(" ".join([expected, worse, *[unknown] * (len(results) < 2 and not tested.zero_shot)]), lead=True)
    if refit:
        yield Text(refit)
    cards = [metric_card(label, metrics[metric]) for metric, label in CARDS.items() if metric in metrics]
    if tested.has_known:
        known = headline(tested, known=True)["pair average"]
        note = f"{ends(known)}, all pairs, if the model is told the domain"
        cards.insert(1, Card("With the domain known", f"{number(known['value'])} %", note, tone(known)))
    if questions:
        cards.insert(1, card_of(questions))
    yield Cards(cards)
    yield from question_blocks(questions)


def metric_card(label: str, row: dict[str, Any]) -> Card:
    """The card of a metric, from its row in a `headline`."""
    return Card(label, f"{number(row['value'])} %", f"{row['what']}; {ends(row)}", tone(row))


def tone(row: Any) -> Literal["", "good", "warn", "bad"]:
    """Colour of a card, where the whole interval supports it."""
    if row["high"] < BAD:
        return "bad"
    return "warn" if row["high"] < WEAK else "good" if row["low"] >= GOOD else ""


def ends(row: Any) -> str:
    """The interval of a row of a table."""
    return f"95 % interval {interval(row['low'], row['high'])}"


def tested_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs with test samples."""
    return pairs[pairs["tested"] > 0]


def below(tested: pd.DataFrame, average: float) -> pd.DataFrame:
    """The pairs that are clearly worse than the average, also considering how many pairs there are; clearest first."""
    return tested[tested["top"] < average].sort_values("top", kind="stable")


def lowest_pairs(tested: pd.DataFrame, average: float, classes: int) -> str:
    """Sentences on pairs that are low compared with the average and in absolute terms, and on those too small to tell.

    Low in absolute terms are pairs with fewer than half of the answers right, and those worse than guessing would be.
    """
    lowest = tested.sort_values(["accuracy", "tested"], ascending=[True, False], kind="stable")
    worse, guessed = below(tested, average), below(tested, 100 / classes)
    low, surely = lowest[lowest["accuracy"] < BAD], lowest[lowest["high"] < BAD]
    found = ["No pair is lower than the average by more than chance explains"]
    if len(worse):
        many = f"{len(worse):,} of {several(len(tested), 'tested pair')}"
        verb = (
            "is clearly worse than the average:" if len(worse) == 1 else "are clearly worse than the average, above all"
        )
        found = [f"{many} {verb} {pair_name(worse.iloc[0])} with {right(worse.iloc[0])}"]
    shown = (surely if len(surely) else lowest).iloc[0]
    named = f"{pair_name(shown)} has {right(shown)} ({ends(shown)})"
    if len(low):
        sure = f" (in {len(surely):,}, the whole interval says so)" if len(surely) else ""
        found.append(f"Fewer than half of the answers are right in {several(len(low), 'pair')}{sure}: {named}")
    else:
        found.append(f"The lowest: {named}")
    if len(guessed):
        found.append(f"Guessing among the {classes:,} classes would be better in {several(len(guessed), 'pair')}")
    if few := int((tested["tested"] < FEW_TESTS).sum()):
        found.append(f"{few:,} {has(few)} fewer than {FEW_TESTS} test samples, too few to tell")
    return f"{'. '.join(found)}."


def pair_name(row: Any) -> str:
    """Domain and class of a row."""
    return f"{row['domain']} / {row['class']}"


def right(row: Any) -> str:
    """The correct answers of a row."""
    return f"{row['hits']:,} of {row['tested']:,} right"


def wants_folds(result: RunResult) -> str:
    """Why to cross-validate: most of the pairs have few test samples; empty if not, or where it is impossible."""
    spec = result.spec
    tested = [number for row in result.test.totals for number in row if number]
    few = sum(number < FEW_TESTS for number in tested)
    if 2 * few <= len(tested) or spec.folds or spec.stop_at is not None or not protocols.find(spec.protocol).folds:
        return ""
    pairs = f"{few:,} of {several(len(tested), 'pair')} {has(few)} fewer than {FEW_TESTS} test samples"
    return f"{pairs}. Cross-validation tests every sample once, and --refit trains the final model on all of them."


def next_steps(results: Sequence[RunResult], of: Tested, out: Path) -> Iterator[Block]:
    """What to collect and to test, and the commands for it."""
    tested, spec, why = tested_pairs(of.pairs), results[0].spec, wants_folds(results[0])
    grouped = spec.with_group(results[0].data.leaks)  # for what is trained from here on
    critical = words(critical=critical_words(results[0].critical))
    yield bullets(_collect(tested, counted=spec.unseen is None, folds=bool(why)))
    if why:
        yield Text(why)
        same = [*options(replace(grouped, folds=FOLDS)), *critical]
        yield Code(shlex.join(["crosstail", "fit", spec.dataset, *same, "--refit", "--out", f"{out}-final"]))
    if len(results) == 1:
        if inputs := as_inputs(spec.dataset, spec.columns):
            yield Text("Use it: classify files, and find out when a person should look. Name your new files instead.")
            predict = ["crosstail", "predict", str(out), *inputs, *options(spec, only=["skip_broken"])]
            yield Code(shlex.join([*predict, "--coverage", "0.9", "--out", f"{out}.csv"]))
        yield Text("For other programs, write the model as one file.")
        yield Code(shlex.join(["crosstail", *export_words(out, Path(f"{out}{suggested_suffix()}"))]))
    if not spec.unseen_domains and spec.stop_at is None:
        if len(results[0].domains) > 1:
            yield Text("Find out what to expect on a new domain: leave out each domain in turn.")
            unseen = replace(grouped, protocol="dg", fold=None, folds=None, labels=None)
            yield Code(short_command("fit", unseen, f"{out}-dg", *critical))
        if spec.tune == "none" and len(results[0].input_shape) == 3:
            yield Text(
                "Where the images are unlike those that the network was pretrained on, tuning its last stage may help. "
                "It goes as far as validation supports; --dry-run says how long it takes."
            )
            tuned = replace(grouped, algorithm=ON_ACTIVATIONS, second_stage=SECOND_STAGE, tune="last")
            yield Code(short_command("fit", tuned, f"{out}-tuned", *critical))
        yield Text("See whether another method is better on these data.")
        yield Code(short_command("race", grouped, f"{out}-race"))
    if spec.stop_at is None and not why:
        yield Text("Train the final model on every sample, and keep this accuracy as its estimate.")
        yield Code(short_command("fit", grouped.undivided, f"{out}-final", *critical, "--refit"))


def _collect(tested: pd.DataFrame, counted: bool, folds: bool) -> Iterator[str]:
    if tested.empty:
        yield "Collect test samples: without any, nothing is known about the model."
        return
    weak = below(tested, float(tested["accuracy"].mean()))
    if len(weak):
        rows = weak.to_dict("records")
        samples = [f" ({several(row['count'], 'training sample')})" if counted else "" for row in rows]
        names = [f"{pair_name(row)}{own}" for row, own in zip(rows, samples, strict=True)]
        yield f"Collect training samples of the pairs that are clearly worse: {listing(names, 5)}."
    few = tested[tested["tested"] < FEW_TESTS].sort_values("tested", kind="stable")
    if len(few) and not folds:
        names = [f"{pair_name(row)} ({row['tested']})" for row in few.to_dict("records")]
        yield f"Collect test samples of the pairs with fewer than {FEW_TESTS}: {listing(names, 5)}."
