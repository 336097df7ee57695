"""What deserves attention before training, in sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crosstail.data.inputs import InputKind
from crosstail.reports.audit.groups import Duplicate, SampleGroup
from crosstail.reports.audit.inputs import EmbeddingInputs
from crosstail.reports.audit.names import near_names
from crosstail.reports.audit.result import Audit, Pair
from crosstail.reports.wording import has, listing, sentence, several

SPARSE_TEST = 10  # below this many test samples, the accuracy of a pair says little
COMMON = 0.2  # share of near-duplicates above which they are probably typical of the data
MEMBERS = 4  # samples shown per group of duplicates


@dataclass(frozen=True)
class AuditFinding:
    """A sentence with the examples behind it; a problem should be solved before training."""

    text: str
    examples: tuple[str, ...] = ()
    problem: bool = False
    unlisted: int = 0
    """Number of further examples."""


def findings(audit: Audit) -> list[AuditFinding]:
    """Everything worth attention: problems first, and of these the ones that inflate accuracy."""
    notes = [AuditFinding(sentence(note)) for note in audit.notes]
    searches = (_groups, _names, _labels, _tests, _inputs, _duplicates)
    found = [*(finding for search in searches for finding in search(audit)), *notes]
    return sorted(found, key=lambda finding: not finding.problem)


def _count(examples: Sequence[str], one: str, many: str, text: str, *, problem: bool = False) -> list[AuditFinding]:
    """How many things have a property, or nothing if none do."""
    n = len(examples)
    return [AuditFinding(f"{several(n, one, many)} {has(n)} {text}", tuple(examples), problem)] if n else []


def _names(audit: Audit) -> Iterable[AuditFinding]:
    text = "several spellings: `--names merge` makes them one, `--names keep` says that they are different."
    yield from _count([str(same) for same in audit.same_names], "name", "names", text, problem=True)
    near = [("class", pair) for pair in near_names(audit.classes)]
    near += [("domain", pair) for pair in near_names(audit.domains)]
    examples = [f"{what} {one!r} and {other!r}" for what, (one, other) in near]
    text = "names that are nearly the same: rename one if it is a slip."
    yield from _count(examples, "pair of classes or domains", "pairs of classes or domains", text)


def _labels(audit: Audit) -> Iterable[AuditFinding]:
    def pairs(found: list[Pair], *, counted: bool = False) -> list[str]:
        return [audit.pair_name(pair) + (f" ({audit.train[pair]})" if counted else "") for pair in found]

    missing = [audit.classes[c] for c in audit.missing_classes("train")]
    text = "no training sample in any domain and cannot be learned."
    yield from _count(missing, "class", "classes", text, problem=True)
    yield from _count([audit.domains[d] for d in audit.empty_domains], "domain", "domains", "no training sample.")
    if len(audit.classes) > 1:
        lone = [audit.domains[d] for d in np.flatnonzero((audit.train > 0).sum(axis=1) == 1)]
        text = "training samples of a single class only, so that the domain gives the class away."
        yield from _count(lone, "domain", "domains", text)
    # Pairs of an empty domain or a missing class are reported above.
    apart = [(d, c) for d, c in audit.zero_pairs if audit.train[d].any() and audit.train[:, c].any()]
    of_all = (f"of {audit.train.size:,} pairs",) * 2
    yield from _count(pairs(apart), *of_all, "no training sample, though the class has some in another domain.")
    text = f"1 to {audit.few} training samples (few-shot)."
    yield from _count(pairs(audit.few_pairs, counted=True), *of_all, text)
    text = "training samples in one domain only: BoDA has nothing to align there."
    yield from _count(pairs(audit.single_domain_classes, counted=True), "class", "classes", text)


def _tests(audit: Audit) -> Iterable[AuditFinding]:
    if not audit.counts["val"].any():
        yield AuditFinding("There are no validation samples to select a step or a trial on.", problem=True)
    if not audit.counts["test"].any():
        yield AuditFinding("There are no test samples to report accuracy on.", problem=True)
        return
    untested = [audit.pair_name(pair) for pair in audit.untested_pairs]
    yield from _count(untested, "pair", "pairs", "training samples but no test sample: its accuracy stays unknown.")
    tested = audit.counts["test"][audit.counts["test"] > 0]
    low, high = int(tested.min()), int(tested.max())
    if low < SPARSE_TEST:
        sizes = several(low, "test sample") if low == high else f"{low:,} to {high:,} test samples"
        text = f"Tested pairs have {sizes} each: one answer changes a pair's accuracy by up to {100 / low:.0f} points."
        yield AuditFinding(text)
    elif low != high:
        yield AuditFinding(
            f"The test set is not balanced ({low:,} to {high:,} samples per pair): the mean over pairs differs from "
            "the mean over domains."
        )


def _inputs(audit: Audit) -> Iterable[AuditFinding]:
    inputs = audit.inputs
    if isinstance(inputs, EmbeddingInputs):
        rows = [f"row {row}" for row in inputs.not_finite]
        yield from _count(rows, "row", "rows", "a NaN or infinite value.", problem=True)
        constant = [f"feature {feature}" for feature in inputs.constant]
        yield from _count(constant, "feature", "features", f"the same value in every row, of {inputs.width}.")
        return
    if inputs.broken:
        is_not = " and is not counted" if len(inputs.broken) == 1 else " and are not counted"
        counted = "" if audit.num_samples > inputs.overall.images else is_not
        text = f"{several(len(inputs.broken), 'image')} cannot be read{counted}."
        yield AuditFinding(text, tuple(f"{name}: {reason}" for name, reason in inputs.broken), problem=True)
    yield from _count(inputs.blank, "image", "images", "a single colour.")


def _groups(audit: Audit) -> Iterable[AuditFinding]:
    for column in audit.group_columns:
        yield AuditFinding(sentence(str(column)), problem=column.shared > 0)
    groups = audit.groups
    if groups is None or not groups.several_splits:
        return
    n, examples = groups.several_splits, tuple(members(group) for group in groups.leaking)
    several_groups = f"{several(n, 'group')} {has(n)}"
    text = f"{several_groups} samples in several splits: accuracy on validation or test would be inflated."
    if groups.leaked_tests:
        tests = f"{groups.leaked_tests:,} of {groups.tests:,} test samples"
        text += f" {tests} share a group with a training sample."
    yield AuditFinding(text, examples, problem=True, unlisted=n - len(examples))


def exact_findings(duplicates: Iterable[Duplicate], kind: InputKind) -> Iterable[AuditFinding]:
    """Exact duplicates, the most harmful kind first; samples without a picture are called rows."""
    noun = kind.noun if kind.picture else "row"
    harms = (
        ("class", True, "across classes: at least one of the labels is wrong."),
        ("split", True, "across splits: accuracy on validation or test would be inflated."),
        ("domain", False, "across domains."),
        ("", False, "within the same pair and split."),
    )
    exact = [duplicate for duplicate in duplicates if duplicate.exact]
    for what, problem, where in harms:
        found = [members(duplicate) for duplicate in exact if _is(duplicate, what)]
        yield from _count(found, noun, f"{noun}s", f"exact duplicates {where}", problem=problem)


def _duplicates(audit: Audit) -> Iterable[AuditFinding]:
    yield from exact_findings(audit.duplicates, audit.kind)
    near = [duplicate for duplicate in audit.duplicates if not duplicate.exact]
    common = sum(len(duplicate.samples) for duplicate in near) > COMMON * audit.num_samples
    for what, where in (
        ("class", "different classes: check their labels."),
        ("split", "different splits: accuracy on validation or test may be inflated."),
    ):
        found = [members(duplicate) for duplicate in near if _is(duplicate, what)]
        where += " With so many, such similarity may be typical of these images." * common
        one, many = "group of near-duplicate images", "groups of near-duplicate images"
        yield from _count(found, one, many, f"members in {where}")
    if not audit.alike_searched and audit.kind.picture:
        yield AuditFinding("Near-duplicate images were not searched for.")


def _is(duplicate: Duplicate, what: str) -> bool:
    if what in ("class", "split"):
        return what in duplicate.across
    return duplicate.across == ((what,) if what else ())  # duplicates across classes or splits are listed there


def members(group: SampleGroup) -> str:
    """The samples of a group and how they differ, joined by +, or duplicates by = (exact) or ~ (near)."""
    names = []
    for sample in group.samples:
        differs = ", ".join(sample.place[what] for what in group.across)
        names.append(f"{sample.name} ({differs})" if differs else sample.name)
    joint = (" = " if group.exact else " ~ ") if isinstance(group, Duplicate) else " + "
    return listing(names, MEMBERS, joint)
