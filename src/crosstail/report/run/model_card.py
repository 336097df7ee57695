"""A run's model card: what the model is, what it was trained on, how good it is, and where it is not to be trusted."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crosstail import algorithms, backbones
from crosstail.data import sheet_of
from crosstail.report.audit.of_run import duplicates_of
from crosstail.report.wording import has, several
from crosstail.report.compare.table_files import TextTable, escaped, markdown, number
from crosstail.report.run.command import command
from crosstail.report.run.tables import headline_table, pair_table, worst_table
from crosstail.report.tables import Result
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder

FIGURES, LIMITS, VERSIONS = "Test accuracy in %", "Limits", "Versions and checksums"
WEAK = 50  # per cent of accuracy below which a pair is named
NAMED = 10  # names in a sentence


@dataclass(frozen=True)
class Part:
    """A heading with sentences, then a table or a line to copy, if there is one."""

    title: str
    sentences: tuple[str, ...]
    table: TextTable | None = None
    code: str = ""


def title_of(spec: RunSpec, folds: bool = False) -> str:
    """What was trained on what."""
    what = f"{spec.algorithm}{', decoupled,' if spec.decouple else ''} on {spec.dataset.rstrip('/').split('/')[-1]}"
    if spec.unseen is None:
        return what
    return f"{what}: each domain unseen in turn" if folds else f"{what}: {spec.unseen} unseen"


def card_parts(run: Path) -> list[Part]:
    """What is to be known of the model of a finished run."""
    folder = RunFolder(run)
    result = folder.read_json("result.json")
    spec = RunSpec.from_json(result["spec"])
    return [
        Part("What it is and what it is for", tuple(_purpose(result))),
        Part("Data", tuple(_data(result, spec)), _counts(result)),
        Part("Training and selection", tuple(_training(result, spec))),
        figures_part([result]),
        Part(LIMITS, (*limits(result), *duplicates_of(run))),
        Part(VERSIONS, tuple(_versions(folder, result))),
        Part("How to repeat it", (), code=command(spec, run)),
    ]


def write_card(out: Path, title: str, parts: Iterable[Part]) -> None:
    """The parts as a Markdown file, with the names that come from the data as plain text."""
    blocks = [f"# {escaped(title)}"]
    for part in parts:
        blocks.append(f"## {escaped(part.title)}")
        if part.sentences:
            blocks.append("\n".join(f"- {escaped(sentence)}" for sentence in part.sentences))
        if part.table and part.table.rows:
            blocks.append(markdown(part.table))
        if part.code:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", part.code)), default=0))
            blocks.append(f"{fence}sh\n{part.code}\n{fence}")
    RunFolder(out.parent).write(out.name, ("\n\n".join(blocks) + "\n").encode())


def exported_part(description: dict[str, Any]) -> Part:
    """What a program that uses an exported file must know, from its machine-readable description."""
    ends = {name: f"{description[name]['type']} {description[name]['shape']}" for name in ("input", "output")}
    check = description["compared"]
    return Part(
        "The file",
        (
            f"Format {description['format']}; input {description['input']['name']}: {ends['input']}. "
            f"{description['input']['how']}",
            f"Output {description['output']['name']}: {ends['output']}, in the order of the classes below.",
            f"Compared with the run on {check['samples']:,} of {check['inputs']}: the same classes, and probabilities "
            f"that differ by {check['largest_difference']:.1g} at most.",
        ),
    )


def figures_part(results: Sequence[Result]) -> Part:
    """The test figures of a run, or of all folds, with their intervals."""
    table = headline_table(results)
    rows = [
        [r["figure"], number(r["value"]), _interval(r["low"], r["high"]), r["what"]] for r in table.to_dict("records")
    ]
    text = TextTable("figures", FIGURES, ["figure", "accuracy", "95 % interval", "of"], rows, table)
    return Part(FIGURES, ("The intervals are for the chance of which samples it was tested on.",), text)


def limits(result: Result) -> list[str]:
    """Where the model's figures are low, missing or not to be relied on, as far as the run tells."""
    spec, pairs = RunSpec.from_json(result["spec"]), pair_table([result])
    found = _domain_limits(result, spec) + _pair_limits(pairs)
    if not np.any(result["validation"]["totals"]):
        found.append("There were no validation samples, so the last evaluation was taken, not the best.")
    if len(result["input_shape"]) == 3 and not _pretrained(spec):
        trained = int(np.sum(result["counts"]))
        found.append(f"Its network began from random weights: all it knows is from {trained:,} training images.")
    found.append(
        f"This is one run, from seed {spec.seed}. The intervals do not allow for what another seed would have given."
    )
    return found


def _purpose(result: Result) -> Iterable[str]:
    shape = result["input_shape"]
    inputs = f"images of {shape[1]} × {shape[2]} pixels" if len(shape) == 3 else f"vectors of {shape[0]:,} numbers"
    yield (
        f"It tells {len(result['classes']):,} classes apart in {inputs} from {len(result['domains']):,} domains, and "
        "is meant to work for every pair of domain and class."
    )
    yield f"Domains: {_names(result['domains'])}."
    yield f"Classes: {_names(result['classes'], len(result['classes']))}."
    yield "It is not meant for other classes: whatever it is shown, it answers with one of these."


def _data(result: Result, spec: RunSpec) -> Iterable[str]:
    sheet = sheet_of(spec.dataset)
    yield f"Source: {spec.dataset}" + (f" ({sheet.title}). {sheet.summary}" if sheet else ".")
    if sheet:
        yield f"Where it comes from: {sheet.source}."
        yield f"Licence: {sheet.licence}. To cite: {sheet.citation}."
    labels = sheet.labels if sheet and spec.labels is None and spec.protocol == "mdlt" else spec.labels
    if labels:
        yield f"Training samples were thinned out by label profiles: {', '.join(labels)}."
    yield f"{result['data']['samples']:,} samples. SHA-256 of samples and split: {result['data']['checksum']}."
    yield from (f"Note: {note}." for note in result["data"]["notes"])


def _counts(result: Result) -> TextTable:
    """Samples per domain and split, and the smallest and largest pair in training."""
    counts = np.asarray(result["counts"])
    tables = [counts, *(np.asarray(result[split]["totals"]) for split in ("validation", "test"))]
    header = ["domain", "training", "validation", "test", "smallest class in training", "largest"]
    rows = [
        [name, *(f"{table[d].sum():,}" for table in tables), f"{counts[d].min():,}", f"{counts[d].max():,}"]
        for d, name in enumerate(result["domains"])
    ]
    return TextTable("counts", "Samples", header, rows, pd.DataFrame(rows, columns=header))


def hyperparameters(result: Result) -> str:
    """All of them in a sentence, whether they were given or the defaults."""
    return f"Hyperparameters: {', '.join(f'{name} {value}' for name, value in result['hparams'].items())}."


def _training(result: Result, spec: RunSpec) -> Iterable[str]:
    own = algorithms.own_file(spec.algorithm)
    about = "a file of the user's own" if own else _first_sentence(algorithms.find(spec.algorithm).__doc__)
    yield f"Algorithm: {spec.algorithm} ({about})" + (
        ". Then a second stage: a new classifier on the fixed features, with class-balanced batches."
        if spec.decouple
        else "."
    )
    weights = spec.weights or ("those it comes with" if _pretrained(spec) else backbones.RANDOM)
    how = f"frozen, with a trained head ({spec.head}) on its features" if spec.freeze else "trained"
    yield f"Network: {spec.backbone}, {how}; first weights: {weights}."
    yield hyperparameters(result)
    yield (
        f"{spec.steps:,} steps with {spec.batch_size} samples per domain, seed {spec.seed}, {result['seconds']:.0f} s; "
        f"of {spec.evaluations} evaluations the one with the best pair average on validation, at step "
        f"{result['selected_step']:,}. Test figures had no part in this."
    )
    if spec.unseen is None:
        yield f"Protocol {spec.protocol}: trained on all domains, selected on validation, tested on every pair."
    else:
        yield (
            f"Protocol {spec.protocol}: trained and selected on the other domains, tested on {spec.unseen}, which it "
            "had never seen."
        )


def _domain_limits(result: Result, spec: RunSpec) -> list[str]:
    if spec.unseen is not None:
        others = _names([name for name in result["domains"] if name != spec.unseen])
        return [
            f"The figures are of {spec.unseen}, a domain it was not trained on. On those it was trained on ({others}) "
            "it was not tested, only selected."
        ]
    trained = [name for name, row in zip(result["domains"], result["counts"], strict=True) if np.sum(row)]
    return [
        f"It has seen {_names(trained)} only. How it does on another domain was not measured; the protocol dg "
        "measures that."
    ]


def _pair_limits(pairs: pd.DataFrame) -> list[str]:
    found = []
    tested = pairs[pairs["tested"] > 0]
    untested = pairs[pairs["tested"] == 0]
    if tested.empty:
        return ["There were no test samples, so nothing is known of its accuracy."]
    if len(untested):
        number = f"{len(untested):,} of {several(len(pairs), 'pair')} {has(len(untested))}"
        found.append(f"{number} no test samples, so nothing is known of them: {_pair_names(untested)}.")
    weak = worst_table(tested[tested["accuracy"] < WEAK], len(tested))
    if len(weak):
        found.append(f"Below {WEAK} %: {len(weak):,} of {several(len(tested), 'tested pair')}, {_pair_names(weak)}.")
    zero = pairs[pairs["shot"] == "zero"]
    if len(zero):
        found.append(f"{several(len(zero), 'pair')} had no training samples: {_pair_names(zero)}.")
    median = float(tested["tested"].median())
    found.append(
        f"The median tested pair has {median:g} test samples, so one answer more or less is {100 / median:.1f} points."
    )
    return found


def _versions(folder: RunFolder, result: Result) -> Iterable[str]:
    versions = result.get("versions")  # runs of earlier versions have none
    yield (
        "Trained with " + ", ".join(f"{name} {value}" for name, value in versions.items()) + "."
        if versions
        else "The run does not say which versions it was trained with."
    )
    model = folder.path / "model.pt"
    if model.exists():
        with model.open("rb") as stream:
            yield f"SHA-256 of model.pt: {hashlib.file_digest(stream, 'sha256').hexdigest()}."
    if result.get("weights"):
        yield f"Checksum of the frozen network's weights: {result['weights']}."


def _pretrained(spec: RunSpec) -> bool:
    return spec.weights != backbones.RANDOM and backbones.pretrained(spec.backbone) is not None


def _first_sentence(doc: str | None) -> str:
    return re.sub(r"\s+", " ", (doc or "").strip().split("\n\n")[0]).rstrip(".")


def _pair_names(pairs: pd.DataFrame) -> str:
    return _names([f"{row['domain']} / {row['class']}" for row in pairs.to_dict("records")])


def _names(names: Sequence[str], number: int = NAMED) -> str:
    return ", ".join(names[:number]) + (f" and {len(names) - number:,} more" if len(names) > number else "")


def _interval(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{number(low)} to {number(high)}"
