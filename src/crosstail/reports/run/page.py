"""The page of a finished run, or of several that leave out each domain or fold in turn."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from crosstail.reports.document import html, markdown
from crosstail.reports.document.model import (
    Block,
    Chart,
    Code,
    Columns,
    Document,
    Heading,
    Text,
    bullets,
    records_table,
)
from crosstail.reports.run import model_card as card
from crosstail.reports.run import tables
from crosstail.reports.run.certainty import all_figures, certainty
from crosstail.reports.run.certainty_data import FILE as METRICS
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.charts import loss_chart, selection_chart
from crosstail.reports.run.command import command
from crosstail.reports.run.confusions import confusion_blocks, pooled_answers
from crosstail.reports.run.critical import critical_blocks, flags_of_run
from crosstail.reports.run.duplicates import duplicates
from crosstail.reports.run.how_trained import how_trained
from crosstail.reports.run.no_look import no_look_blocks, points_of_run
from crosstail.reports.run.tables import DISTANCE_COLUMNS, DISTANCE_NOTE, STATISTICS
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.trace import trace_charts
from crosstail.reports.run.tuning import tuning_blocks
from crosstail.reports.run.two_questions import Questions
from crosstail.reports.run.unseen import unseen_blocks
from crosstail.reports.run.verdict import next_steps, usable
from crosstail.reports.run.worst_pairs import pair_map, worst_pairs
from crosstail.reports.wording import (
    KNOWN_PAIR_AVERAGE,
    TRACKS,
    both_ends,
    estimate_note,
    estimated,
    selected_on,
    shown,
)
from crosstail.storage import write_whole
from crosstail.training.result import Evaluation, RunResult
from crosstail.training.run import Run


def write_page(run: Run) -> None:
    """Write report.html, model_card.md, and metrics.csv if it has kept probabilities, into the run's folder."""
    about, repeated = Certainty.of(run), duplicates(run)
    html.save(run_document(run, about, repeated), run.path / "report.html")
    if about is not None:
        write_whole(run.path / METRICS, about.metrics.to_csv(index=False, float_format="%.6g").encode())
    write_whole(run.path / "model_card.md", markdown.render(card.model_card(run, about, repeated)).encode())


def write_folds_page(out: Path, runs: Sequence[Run], final: Run | None = None) -> None:
    """Write OUT/report.html over the runs that leave out each domain or fold; `final` is the run on every sample."""
    html.save(folds_document(out, runs, final), out / "report.html")


def run_document(run: Run, about: Certainty | None, repeated: Sequence[str] = ()) -> Document:
    """The page of one run."""
    result, tested = run.result, Tested.of_results([run.result])
    mistaken = confusion_blocks(run.test, run.dataset, images=len(result.input_shape) == 3)
    fails = [
        *pair_map(tested.pairs, tested.shots[1], _counted(result)),
        *mistaken,
        *worst_pairs(tested, _counted(result)),
    ]
    questions = about.questions if about else None
    blocks = [
        *critical_blocks(tested, questions, flags_of_run(run)),
        *no_look_blocks(points_of_run(about) if about else [], result.domains),
        Heading("Can I use it?"),
        *usable(tested, [result], questions),
        *([Heading("Where does it fail?"), *fails] if fails else ()),
        *certainty(run, about),
        *tuning_blocks(result),
        Heading("What next?"),
        *next_steps([result], tested, run.path),
        Heading("How was it made?", closed=True),
        *_notes([result]),
        *_metrics([result], tested),
        *all_figures(about),
        *_training(result, run.records),
        *_data([result]),
        Heading("Limits", 3),
        bullets([*card.limits(run, tested), *repeated]),
        *_repeat(command(result.spec, run.path, result.critical), result),
        Heading("Versions and checksums", 3),
        bullets(card.versions(run)),
        Text("`model_card.md` has the same and more, to ship with the model.", dim=True),
        *_transferability(result, run.records),
    ]
    return Document(card.title_of(result.spec), blocks)


def folds_document(out: Path, runs: Sequence[Run], final: Run | None = None) -> Document:
    """The page over all folds, or over all unseen domains."""
    results = [run.result for run in runs]
    spec, tested, images = results[0].spec, Tested.of_results(results), len(results[0].input_shape) == 3
    dg, questions = spec.unseen_domains, Questions.of_runs([final] if final else runs)
    about = Certainty.of(final) if final else None
    blocks = [
        *critical_blocks(tested, questions, flags_of_run(final) if final else []),
        *no_look_blocks(points_of_run(about) if about else [], results[0].domains),
        Heading("Can I use it on a new domain?" if dg else "Can I use it?"),
        *(unseen_blocks(results) if dg else usable(tested, results, questions)),
        *(() if dg else _folds(results, tested)),
        Heading("Where does it fail?"),
        *pair_map(tested.pairs, tested.shots[1], _counted(results[0])),
        *confusion_blocks(pooled_answers(runs), runs[0].dataset, images=images),
        *worst_pairs(tested, _counted(results[0])),
        Heading("What next?"),
        *next_steps(results, tested, out),
        Heading("How was it made?", closed=True),
        *_notes(results),
        *_metrics(results, tested),
        *_data(results),
        *_repeat(command(spec.undivided, out, results[0].critical), results[0]),
    ]
    return Document(card.title_of(spec, folds=True), blocks)


def _counted(result: RunResult) -> str:
    """What is counted for each pair."""
    return "training samples" + (" of the class" if result.spec.unseen is not None else "")


def _notes(results: Sequence[RunResult]) -> list[Block]:
    return [Text(f"Note: {note}.") for note in dict.fromkeys(note for result in results for note in result.notes)]


def _metrics(results: Sequence[RunResult], tested: Tested) -> Iterator[Block]:
    table = card.accuracy_table(tested)
    if not table.rows:
        return
    yield Heading("All metrics", 3)
    pooled = f" of {len(results)} folds together: every sample was tested once" if results[0].spec.fold else ""
    refit = estimate_note(results[0])
    title = f"{'Estimated' if refit else 'Test'} accuracy{pooled if len(results) > 1 else ''}, in %."
    yield Text(" ".join(filter(None, (title, tested.tracks_note, card.intervals_note(tested.accuracy)))))
    note = "The worst pair and domain were chosen on these test samples: on others, they are likely to do better."
    yield replace(table, note=note)


def _folds(results: Sequence[RunResult], tested: Tested) -> Iterator[Block]:
    yield Heading("Each fold", 3)
    yield Text(
        "Each row is a separate run: one fold is its test set, a tenth of every pair in the others its validation set, "
        "and it is trained on the rest. Pooled is the accuracy on the test samples of all folds together, not the mean "
        "of the rows: rare pairs are tested in some folds only. The standard deviation over folds shows how much the "
        "accuracy depends on the samples that were trained and tested on. A run's folder has a page with its learning "
        "curves."
    )
    records = tables.cross_validation_table(results).to_dict("records")
    columns: Columns = {"fold": lambda row: str(row["fold"]), "tested": shown("tested", 0, ",")}
    columns |= {"pair average": shown("pair average"), "95 % interval": both_ends}
    columns |= {TRACKS[1]: shown("known")} if tested.has_known else {}
    columns |= {"average over domains": shown("average"), "validation": shown("validation"), **DISTANCE_COLUMNS}
    note = f"{KNOWN_PAIR_AVERAGE} {DISTANCE_NOTE}" if tested.has_known else DISTANCE_NOTE
    yield records_table(records, columns, note=note, strong={len(results)})


def _training(result: RunResult, records: Sequence[Evaluation]) -> Iterator[Block]:
    if not records:  # the file may have been removed
        return
    spec = result.spec
    yield Heading("Training", 3)
    weights, metric = " of the averaged weights" if spec.average else "", selected_on(spec.selected_on)
    second = " The second stage fits a new classifier on the features of stage one." if records[-1].stage == 2 else ""
    kept = f"The evaluation{weights} with the best {metric} on validation is reported (ring).{second}"
    if spec.average == "swad" and (last := records[-1].averaged) and last.steps:
        first, end = last.steps
        kept = f"The mean of the weights after steps {first:,} to {end:,} is reported, SWAD's window (ring).{second}"
    yield Text(how_trained(result, kept))
    curve, losses = tables.selection_curve(result, records), tables.loss_curve(records)
    if curve["at"].nunique() > 1:
        alternative = f"Lines: {metric}{weights} on validation and test over the training steps"
        yield Chart("accuracy", "", selection_chart(curve, spec.selected_on), alternative)
    if len(losses):
        yield Text("Loss terms, each averaged over the steps since the previous evaluation.")
        yield Chart("losses", "", loss_chart(losses), "Lines: loss terms over the training steps")


def _transferability(result: RunResult, records: Sequence[Evaluation]) -> Iterator[Block]:
    found = result.transferability
    values = [estimated(getattr(found, name), found.errors.get(name)) for name in STATISTICS]
    table = tables.distance_table(values, bool(found.errors))
    if not table.rows:
        return
    yield Heading("Transferability: α, β, γ", 3)
    yield Text(
        "Features carry over between domains where a class is close to itself in the other domains (small α) and far "
        "from other classes (large β and γ); `crosstail graph` draws the distances."
    )
    yield table
    yield from trace_charts(result, records)


def _data(results: Sequence[RunResult]) -> Iterator[Block]:
    first = results[0]
    about = f"{first.spec.dataset}: {first.data.samples:,} samples"
    if len(results) == 1:
        parts = {"training": first.counts, "validation": first.validation.totals, "test": first.test.totals}
        about += " (" + ", ".join(f"{int(np.sum(n)):,} for {split}" for split, n in parts.items()) + ")"
    yield Heading("Data", 3)
    yield Text(f"{about}, {len(first.domains):,} domains, {len(first.classes):,} classes.")
    yield from (Text(f"Note: {note}") for note in first.data.notes)


def _repeat(line: str, result: RunResult) -> list[Block]:
    return [Heading("How to repeat it", 3), Code(line), Text(card.hyperparameters(result), dim=True)]
