"""What somebody should look at, in sentences."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosstail.report.audit.duplicates import Duplicate
from crosstail.report.audit.inputs import EmbeddingInputs
from crosstail.report.audit.result import Audit, Pair
from crosstail.report.audit.wording import has, sentence, several

SPARSE_TEST = 10  # test samples of a pair below which its accuracy says little
MUCH = 0.2  # share of images that look alike from which on it is no accident
MEMBERS = 4  # of a group of duplicates, that are shown

Level = Literal["problem", "note"]


@dataclass(frozen=True)
class Finding:
    """A problem is to be solved before training, a note to be known; the examples are all there are."""

    level: Level
    text: str
    examples: tuple[str, ...] = ()


def findings(audit: Audit) -> list[Finding]:
    """Everything worth a look, problems first."""
    said = [Finding("note", sentence(note)) for note in audit.notes]
    found = [*_labels(audit), *_tests(audit), *_inputs(audit), *_duplicates(audit), *said]
    return sorted(found, key=lambda finding: finding.level != "problem")


def _labels(audit: Audit) -> Iterable[Finding]:
    def pairs(found: list[Pair], *, counted: bool = False) -> tuple[str, ...]:
        return tuple(audit.pair_name(p) + (f" ({audit.train[p]})" if counted else "") for p in found)

    missing = [audit.classes[c] for c in audit.missing_classes("train")]
    if missing:
        n = len(missing)
        text = f"{several(n, 'class', 'classes')} {has(n)} no training sample in any domain and cannot be learned."
        yield Finding("problem", text, tuple(missing))
    empty = [audit.domains[d] for d in audit.empty_domains]
    if empty:
        text = f"{several(len(empty), 'domain')} {has(len(empty))} no training sample."
        yield Finding("note", text, tuple(empty))
    lone = [audit.domains[d] for d in np.flatnonzero((audit.train > 0).sum(axis=1) == 1)]
    if lone and len(audit.classes) > 1:
        text = (
            f"{several(len(lone), 'domain')} {has(len(lone))} training samples of one class only: it shows the domain."
        )
        yield Finding("note", text, tuple(lone))
    # What has no training sample because its class or its domain has none is said already.
    apart = [(d, c) for d, c in audit.zero_pairs if audit.train[d].any() and audit.train[:, c].any()]
    if apart:
        text = (
            f"{several(len(apart), 'pair')} of {audit.train.size:,} {has(len(apart))} no training sample, "
            "though the class has some in another domain."
        )
        yield Finding("note", text, pairs(apart))
    if audit.few_pairs:
        n = len(audit.few_pairs)
        text = f"{several(n, 'pair')} of {audit.train.size:,} {has(n)} 1 to {audit.few} training samples (few-shot)."
        yield Finding("note", text, pairs(audit.few_pairs, counted=True))
    if audit.single_domain_classes:
        n = len(audit.single_domain_classes)
        verb = "lives" if n == 1 else "live"
        text = f"{several(n, 'class', 'classes')} {verb} in one domain only: there BoDA has nothing to align with."
        yield Finding("note", text, pairs(audit.single_domain_classes, counted=True))


def _tests(audit: Audit) -> Iterable[Finding]:
    if not audit.counts["val"].any():
        yield Finding("problem", "There is no validation sample: nothing says which step or which trial is the best.")
    if not audit.counts["test"].any():
        yield Finding("problem", "There is no test sample: nothing can be reported.")
        return
    untested = audit.untested_pairs
    if untested:
        n = len(untested)
        text = f"{several(n, 'pair')} {has(n)} training samples but no test sample: their accuracy stays unknown."
        yield Finding("note", text, tuple(audit.pair_name(pair) for pair in untested))
    tested = audit.counts["test"][audit.counts["test"] > 0]
    low, high = int(tested.min()), int(tested.max())
    if low < SPARSE_TEST:
        sizes = several(low, "test sample") if low == high else f"{low:,} to {high:,} test samples"
        text = f"Tested pairs have {sizes} each: one answer moves the accuracy by up to {100 / low:.0f} points."
        yield Finding("note", text)
    elif low != high:
        text = f"The test set is not balanced ({low:,} to {high:,} samples per pair): the mean over pairs is not that"
        yield Finding("note", f"{text} over domains.")


def _inputs(audit: Audit) -> Iterable[Finding]:
    inputs = audit.inputs
    if isinstance(inputs, EmbeddingInputs):
        if inputs.not_finite:
            n = len(inputs.not_finite)
            text = f"{several(n, 'row')} {has(n)} a value that is NaN or infinite."
            yield Finding("problem", text, tuple(f"row {row}" for row in inputs.not_finite))
        if inputs.constant:
            n = len(inputs.constant)
            text = f"{several(n, 'feature')} of {inputs.width} {has(n)} the same value in every row."
            yield Finding("note", text, tuple(f"feature {feature}" for feature in inputs.constant))
        return
    if inputs.broken:
        n = len(inputs.broken)
        text = f"{several(n, 'image')} cannot be read."
        yield Finding("problem", text, tuple(f"{name}: {reason}" for name, reason in inputs.broken))
    if inputs.blank:
        n = len(inputs.blank)
        text = f"{several(n, 'image')} {has(n)} one colour all over."
        yield Finding("note", text, inputs.blank)


def exact_findings(duplicates: Iterable[Duplicate], thing: str) -> Iterable[Finding]:
    """What occurs twice, by how bad that is."""
    kinds: tuple[tuple[str, Level, str], ...] = (
        ("class", "problem", "in two classes: at least one of the labels is wrong"),
        ("split", "problem", "in two splits: figures on validation or test would be too good"),
        ("domain", "note", "in two domains"),
        ("", "note", "more than once in the same pair and split"),
    )
    exact = [duplicate for duplicate in duplicates if duplicate.exact]
    for what, level, where in kinds:
        found = [duplicate for duplicate in exact if _is(duplicate, what)]
        if found:
            text = f"{several(len(found), thing)} {'occurs' if len(found) == 1 else 'occur'} {where}."
            yield Finding(level, text, tuple(members(duplicate) for duplicate in found))


def _duplicates(audit: Audit) -> Iterable[Finding]:
    yield from exact_findings(audit.duplicates, "image" if audit.is_image else "row")
    near = [duplicate for duplicate in audit.duplicates if not duplicate.exact]
    much = sum(len(duplicate.samples) for duplicate in near) > MUCH * audit.num_samples
    for what, where in (
        ("class", "but differ in class: look at their labels"),
        ("split", "and are in two splits: figures on validation or test may be too good"),
    ):
        found = [duplicate for duplicate in near if _is(duplicate, what)]
        if found:
            text = f"{several(len(found), 'group of images looks', 'groups of images look')} alike {where}."
            text += " With so many, it may be the nature of these images." if much else ""
            yield Finding("note", text, tuple(members(duplicate) for duplicate in found))
    if not audit.alike_searched and audit.is_image:
        yield Finding("note", "Images that look alike but are not equal were not looked for.")


def _is(duplicate: Duplicate, what: str) -> bool:
    if what in ("class", "split"):
        return what in duplicate.across
    return duplicate.across == ((what,) if what else ())  # what is in two classes or splits is listed there


def members(duplicate: Duplicate) -> str:
    """The samples of a duplicate with what they differ in, joined by = or ~."""
    shown = []
    for sample in duplicate.samples[:MEMBERS]:
        said = {"class": sample.class_, "split": sample.split, "domain": sample.domain}
        differs = ", ".join(said[what] for what in duplicate.across)
        shown.append(f"{sample.name} ({differs})" if differs else sample.name)
    rest = len(duplicate.samples) - len(shown)
    return (" = " if duplicate.exact else " ~ ").join(shown) + (f" and {rest:,} more" if rest else "")
