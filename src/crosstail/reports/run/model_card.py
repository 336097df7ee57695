"""A run's model card: what the model is, what it was trained on, how accurate it is, and where not to trust it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail import algorithms, backbones, discovery, second_stages
from crosstail.data import data_name, protocols, sheet_of
from crosstail.data.inputs import kind_of_model
from crosstail.metrics import PairAccuracy
from crosstail.reports.document.model import Block, Code, Document, Heading, Table, bullets
from crosstail.reports.run.certainty import certainty_card
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.command import command
from crosstail.reports.run.critical import critical_blocks, flags_of_run
from crosstail.reports.run.how_trained import how_trained
from crosstail.reports.run.suspects import label_error_note
from crosstail.reports.run.tables import headline_table, worst_table
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.two_questions import question_blocks
from crosstail.reports.run.verdict import ends, right
from crosstail.reports.wording import (
    TRACKS,
    either,
    estimate_note,
    has,
    interval,
    listing,
    number,
    selected_on,
    several,
)
from crosstail.training import RunSpec
from crosstail.training.result import RunResult
from crosstail.training.run import Run

WEAK = 50  # accuracy in % below which a pair is named


def title_of(spec: RunSpec, folds: bool = False) -> str:
    """The method and the data."""
    what = f"{spec.method} on {data_name(spec.dataset)}"
    part = spec.part
    if folds:
        part = f"{spec.folds} folds" if spec.folds else "each domain unseen in turn"
    return f"{what}: {part}" if part else what


def model_card(
    run: Run, about: Certainty | None, repeated: Sequence[str] = (), exported: dict[str, Any] | None = None
) -> Document:
    """The card of a run, or of a file exported from it, given the file's machine-readable description.

    `repeated` are sentences on duplicates in the data.
    """
    result, tested = run.result, Tested.of_results([run.result])
    questions = about.questions if about else None
    parts: dict[str, list[Block]] = {
        "File": [bullets(_file(exported))] if exported else [],
        "Model and intended use": [bullets(_purpose(result))],
        "Data": [bullets(filter(None, (*_data(result), label_error_note(run)))), _counts(result)],
        "Training and selection": [bullets(_training(result))],
        f"{'Estimated' if result.estimate else 'Test'} accuracy in %": [
            bullets(filter(None, (estimate_note(result), tested.tracks_note, intervals_note(tested.accuracy)))),
            accuracy_table(tested),
            *question_blocks(questions),
        ],
        "Certainty": certainty_card(run, about),
        "Limits": [bullets([*limits(run, tested), *repeated])],
        "Versions and checksums": [bullets(versions(run))],
        "How to repeat it": [Code(command(result.spec, run.path, result.critical))],
    }
    blocks = [*critical_blocks(tested, questions, flags_of_run(run))]
    blocks += [block for heading, part in parts.items() if part for block in (Heading(heading), *part)]
    return Document(title_of(result.spec), blocks)


def accuracy_table(tested: Tested) -> Table:
    """The test metrics of a run, or over all folds, with their intervals; both tracks if the model uses the domain."""
    tracks = dict(zip(TRACKS, (False, True), strict=True)) if tested.has_known else {"accuracy": False}
    records = [headline_table(tested, known).to_dict("records") for known in tracks.values()]
    rows = [
        [row[0]["metric"]]
        + [cell for r in row for cell in (number(r["value"]), interval(r["low"], r["high"]))]
        + [either(row[0]["what"], row[-1]["what"])]
        for row in zip(*records, strict=True)
    ]
    header = ["metric", *(name for track in tracks for name in (track, "95 % interval")), "of"]
    return Table(header=header, rows=rows, words_last=True)


def intervals_note(accuracy: PairAccuracy) -> str:
    """What the intervals cover, and by how much groups widen them."""
    note = (
        "The intervals cover the choice of test samples. The worst pair and domain were picked as the worst, and would "
        "likely do better on other samples."
    )
    if accuracy.squares is None:
        return note
    independent = accuracy.independent[1].sum()
    together = "Samples of one group are assumed to be classified correctly or incorrectly together"
    return f"{note} {together}, so the {accuracy.totals.sum():,} test samples count as {independent:,.0f}."


def limits(run: Run, tested: Tested) -> list[str]:
    """Where the accuracy is low, unknown or unreliable, as far as the run shows."""
    result = run.result
    found = [_domain_limit(result), *_pair_limits(tested.pairs)]
    if not np.any(result.validation.totals) and result.spec.stop_at is None:
        found.append("There were no validation samples, so the last evaluation was selected, not the best one.")
    kind = kind_of_model(tuple(result.input_shape))
    if kind.picture and not _pretrained(result.spec):
        trained = int(np.sum(result.counts))
        found.append(f"The network was randomly initialised and trained on {trained:,} images only.")
    models = "All models had" if result.estimate else "A single run with"
    found.append(f"{models} seed {result.spec.seed}; the intervals do not cover the choice of seed.")
    return found


def versions(run: Run) -> Iterator[str]:
    """What the model was trained with, and how to recognise its files."""
    yield f"Trained with {', '.join(f'{name} {value}' for name, value in run.result.versions.items())}."
    if run.checksum:
        yield f"SHA-256 of model.pt: {run.checksum}."
    if run.result.weights:
        yield f"Checksum of the frozen backbone's weights: {run.result.weights}."


def hyperparameters(result: RunResult) -> str:
    """All hyperparameters, whether given or default, and what else is known of the optimizer."""
    named = ("optimizer", "schedule", "warm_up", "second_lr")
    given = {name: value for name in named if (value := getattr(result.spec, name)) is not None}
    return f"Hyperparameters: {', '.join(f'{name} {value}' for name, value in (result.hparams | given).items())}."


def _file(description: dict[str, Any]) -> Iterator[str]:
    source, target, check = (description[name] for name in ("input", "output", "compared"))
    given = f"input {source['name']}: {source['type']} {source['shape']}. {source['how']}"
    yield f"Format {description['format']}; {given}"
    yield f"Output {target['name']}: {target['type']} {target['shape']}, in the order of the classes below."
    if description["site"]:
        yield f"For inputs from the domain {description['site']} only: it is fixed in the file."
    else:
        yield f"Input site: the number of each input's site, {_numbered(description['sites'])}; −1 if it is unknown."
    if more := description["outputs"][1:]:
        meant = {"set": "the classes of its prediction set", "alarm": "critical classes that it may be of"}
        meant |= {"review": "whether a person should look", "unlike_training": "whether it is unlike all of training"}
        yield f"Also {', '.join(f'{name} ({meant[name]})' for name in more)}."
    of = "classes as frequent as its `shares`" if description["shares"] else "pairs that are all equally important"
    yield f"Its probabilities are for {of}; crosstail export --prior sets that."
    yield (
        f"Compared with the run on {check['samples']:,} of {check['inputs']}: same classes, probabilities within "
        f"{check['largest_difference']:.1g}."
    )


def _numbered(sites: Sequence[str]) -> str:
    return listing([f"{i} {name}" for i, name in enumerate(sites)])


def _purpose(result: RunResult) -> Iterator[str]:
    shape, classes, domains = result.input_shape, result.classes, result.domains
    inputs = kind_of_model(tuple(shape)).described(tuple(shape))
    yield (
        f"A classifier of {inputs} into {several(len(classes), 'class', 'classes')}, trained to be accurate for every "
        f"class in each of {several(len(domains), 'domain')}."
    )
    yield f"Domains: {listing(domains)}."
    yield f"Classes: {', '.join(classes)}."
    yield "Not intended for other classes: every input is assigned to one of these."


def _data(result: RunResult) -> Iterator[str]:
    spec, sheet = result.spec, sheet_of(result.spec.dataset)
    yield f"Source: {spec.dataset}" + (f" ({sheet.title}). {sheet.summary}" if sheet else ".")
    if sheet:
        yield f"Origin: {sheet.source}."
        yield f"Licence: {sheet.licence}. Citation: {sheet.citation}."
    if labels := protocols.profiles(spec):
        yield f"Training samples were subsampled by label profiles: {', '.join(labels)}."
    yield f"{several(result.data.samples, 'sample')}. SHA-256 of samples and split: {result.data.checksum}."
    yield from (f"Note: {note}." for note in result.data.notes)


def _counts(result: RunResult) -> Table:
    """Samples per domain and split, and the smallest and largest class in training."""
    counts = np.asarray(result.counts)
    tables = [counts, np.asarray(result.validation.totals), np.asarray(result.test.totals)]
    rows = [
        [name, *(f"{table[d].sum():,}" for table in tables), f"{counts[d].min():,}", f"{counts[d].max():,}"]
        for d, name in enumerate(result.domains)
    ]
    header = ["domain", "training", "validation", "test", "smallest class in training", "largest"]
    return Table(header=header, rows=rows)


def _training(result: RunResult) -> Iterator[str]:
    spec = result.spec
    own, defined = discovery.own_files, "a user-defined file"  # whose code a report does not run
    parts = [] if own(spec.algorithm) else algorithms.docstrings(algorithms.find(spec.algorithm))
    firsts = [" ".join(doc.strip().split("\n\n")[0].split()).rstrip(".") for doc in parts]
    yield f"Algorithm: {spec.algorithm} ({'; '.join(firsts) or defined})."
    if spec.second_stage:
        about = defined if own(spec.second_stage) else second_stages.entry(spec.second_stage).what
        yield f"Second stage: {spec.second_stage}, on fixed features ({about})."
    weights = spec.weights or ("pretrained" if _pretrained(spec) else backbones.RANDOM)
    tuned = "last stage" if spec.stages == 1 else f"last {spec.stages} stages"
    how = {"none": f"frozen, with a trained head ({spec.head}) on its features", "all": "trained"}
    share = result.tuned.share if result.tuned else 1
    how["last"] = f"frozen but for its {tuned}, {100 * share:.0f} % of the way to the tuned weights"
    yield f"Backbone: {spec.backbone}, {how[str(spec.tune).partition(':')[0]]}; initial weights: {weights}."
    yield hyperparameters(result)
    yield from (f"Note: {note}." for note in result.notes)
    kept = (
        f"Of {several(spec.evaluations or 0, 'evaluation')}, the one with the best {selected_on(spec.selected_on)} on "
        f"validation was selected: step {result.selected_step:,}. Test accuracy was not used."
    )
    if spec.average == "swad":
        kept = "The weights are SWAD's average over steps chosen by validation losses. Test accuracy was not used."
    yield how_trained(result, kept)
    if spec.stop_at is not None:
        yield "Trained on every sample of all domains, after selection; nothing is held out."
    elif spec.fold is not None:
        yield (
            f"Cross-validation, {spec.part}: trained on the other folds, selected on a tenth of every pair in them, "
            "tested on this one."
        )
    elif spec.unseen is None:
        yield f"Protocol {spec.protocol}: trained on all domains, selected on validation, tested on every pair."
    else:
        yield (
            f"Protocol {spec.protocol}: trained on 80 % of the other domains, selected on the rest, tested on 80 % "
            f"of {spec.unseen}."
        )


def _domain_limit(result: RunResult) -> str:
    unseen = result.spec.unseen
    if unseen is not None:
        others = listing([name for name in result.domains if name != unseen])
        return (
            f"The accuracies are for {unseen}, a domain it was not trained on. On the training domains ({others}) it "
            "was validated but not tested."
        )
    if result.estimate and result.spec.unseen_domains:
        return "The accuracies are for domains that the tested models had not seen; this one has seen all of these."
    trained = [name for name, row in zip(result.domains, result.counts, strict=True) if np.sum(row)]
    return f"Trained on {listing(trained)} only. Accuracy on other domains was not measured; the protocol dg does that."


def _pair_limits(pairs: pd.DataFrame) -> Iterator[str]:
    tested, untested, zero = (pairs[chosen] for chosen in (pairs.tested > 0, pairs.tested == 0, pairs.shot == "zero"))
    if tested.empty:
        yield "There were no test samples, so its accuracy is unknown."
        return
    if len(untested):
        share = f"{len(untested):,} of {several(len(pairs), 'pair')} {has(len(untested))}"
        yield f"{share} no test samples, so the accuracy there is unknown: {_pair_names(untested)}."
    weak = worst_table(tested[tested["accuracy"] < WEAK], len(tested))
    if len(weak):
        rows = weak.to_dict("records")
        named = listing([f"{row['domain']} / {row['class']} ({right(row)}, {ends(row)})" for row in rows])
        yield f"Below {WEAK} %: {len(weak):,} of {several(len(tested), 'tested pair')}, {named}."
    if len(zero):
        yield f"{several(len(zero), 'pair')} had no training samples: {_pair_names(zero)}."
    yield resolution_note(tested)


def resolution_note(tested: pd.DataFrame) -> str:
    """How much one answer moves the accuracy of the median tested pair."""
    median = float(tested["tested"].median())
    points = f"{100 / median:.1f} points"
    return f"The median tested pair has {median:g} test samples, so one answer moves its accuracy by {points}."


def _pretrained(spec: RunSpec) -> bool:
    assert spec.backbone is not None
    return spec.weights != backbones.RANDOM and backbones.pretrained(spec.backbone) is not None


def _pair_names(pairs: pd.DataFrame) -> str:
    return listing([f"{domain} / {name}" for domain, name in zip(pairs["domain"], pairs["class"], strict=True)])
