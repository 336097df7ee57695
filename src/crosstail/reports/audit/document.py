"""An audit as a page, and in short for the terminal."""

from collections.abc import Iterator, Sequence
from math import log, nan

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.metrics import SHOTS
from crosstail.reports.audit import charts
from crosstail.reports.audit.advice import CAVEAT, PAPER_SETS
from crosstail.reports.audit.findings import AuditFinding, findings, members
from crosstail.reports.audit.groups import SampleGroup, pictures
from crosstail.reports.audit.inputs import EmbeddingInputs, ImageSummary
from crosstail.reports.audit.result import Audit
from crosstail.reports.document.model import (
    Block,
    Document,
    Gallery,
    Heading,
    Item,
    Items,
    Table,
    Text,
    bullets,
)
from crosstail.reports.document.terminal import cut
from crosstail.reports.wording import number, several

GROUPS = 12  # groups shown with images
CLASSES, DOMAINS = 12, 8  # the largest tables of pairs and of domains that fit the terminal
ROWS = 20  # domains listed in the terminal
SPLITS = ("training", "validation", "test")


def page(audit: Audit, dataset: DomainDataset, suspects: Sequence[Block] = ()) -> Document:
    """Probable label errors, if asked for, and all that the audit found; images of duplicates are from `dataset`."""
    samples = [f"{int(table.sum()):,} for {split}" for split, table in zip(SPLITS, audit.counts.values(), strict=True)]
    size = f"{_size(audit)}, {several(audit.train.size, 'pair')}: {', '.join(samples)}."
    shots = (
        f"Pairs are many-shot with more than {audit.many} training samples, medium-shot with more than {audit.few}, "
        "few-shot with at least 1, zero-shot with none."
    )
    found = findings(audit)
    problems, notes = ([finding for finding in found if finding.problem == of] for of in (True, False))
    blocks: list[Block | None] = [
        *suspects,
        Text(verdict(found), lead=True),
        *_section("Problems to solve before training", problems, 6),
        *_leaking(audit, dataset),
        *_duplicates(audit, dataset),
        *_section("Worth knowing", notes, 6),
        *_advice(audit),
        Heading("Samples per pair"),
        Text(size),
        charts.count_chart(audit),
        _domains(audit),
        Text(shots, dim=True),
        *_divergence(audit),
        *_groups(audit),
        *_inputs(audit),
    ]
    return Document(f"{audit.name}: data audit", [block for block in blocks if block is not None])


def summary(audit: Audit) -> list[Block]:
    """The parts that fit the terminal."""
    small = len(audit.classes) <= CLASSES and len(audit.domains) <= DOMAINS
    found = findings(audit)
    return [
        _cropped(_domains(audit, f"{audit.name}: {_size(audit)}")),
        *[_counts(audit)] * small,
        _cropped(_distances(audit)),
        *_groups(audit),
        *(_cropped(block) if isinstance(block, Table) else block for block in _inputs(audit)),
        *_section("What to check", found, 3),
        Text(verdict(found)),
        *_advice(audit),
    ]


def _size(audit: Audit) -> str:
    samples = several(audit.num_samples, audit.kind.noun)
    return f"{samples}, {several(len(audit.domains), 'domain')}, {several(len(audit.classes), 'class', 'classes')}"


def _advice(audit: Audit) -> list[Block]:
    return [Heading("What to expect"), bullets(audit.advice), Text(CAVEAT, dim=True)]


def verdict(found: Sequence[AuditFinding]) -> str:
    """Whether there is something to solve before training, in one sentence."""
    problems = sum(finding.problem for finding in found)
    if problems:
        return f"{several(problems, 'problem')} to solve before training."
    if found:
        return f"No problems, and {several(len(found), 'thing')} worth knowing."
    return "Nothing stands out: no duplicates, no broken inputs, no rare or untested pairs."


def _section(title: str, found: Sequence[AuditFinding], examples: int) -> list[Block]:
    items = []
    for finding in found:
        rest = len(finding.examples) + finding.unlisted - examples
        shown = [*finding.examples[:examples], *[f"and {rest:,} more"] * (rest > 0)]
        items.append(Item(finding.text, "; ".join(shown), finding.problem))
    return [Heading(title), Items(items)] if items else []


def _domains(audit: Audit, title: str = "") -> Table:
    rows = []
    for d, domain in enumerate(audit.domains):
        sizes = audit.train[d][audit.train[d] > 0]
        span = f"{sizes.min():,}–{sizes.max():,}" if len(sizes) else "–"
        samples = [f"{int(table[d].sum()):,}" for table in audit.counts.values()]
        rows.append([domain, *samples, span, *(str(n) for n in audit.shot_counts(d).values())])
    return Table(title=title, header=["domain", "train", "val", "test", "per pair", *SHOTS], rows=rows)


def _counts(audit: Audit) -> Table:
    width = max(5, min(max(map(len, audit.domains)), 56 // len(audit.domains) - 1))
    largest = log(max(int(audit.train.max(initial=0)), 2))
    return Table(
        title="Training samples per pair",
        header=["class", *(cut(domain, width) for domain in audit.domains)],
        rows=[[cut(name, 20), *(f"{n:>{width}}" for n in audit.train[:, c])] for c, name in enumerate(audit.classes)],
        shades={(c, d + 1): log(n) / largest if n else nan for (d, c), n in np.ndenumerate(audit.train)},
    )


def _distances(audit: Audit) -> Table:
    """Divergence of every domain from uniform and from the others, or from their mean if there are many."""
    d, others = audit.divergence, audit.domains
    between = d.between
    if len(others) > DOMAINS:
        others = ("other domains, mean",)
        apart = np.ma.masked_invalid(np.where(np.eye(len(between), dtype=np.bool_), np.nan, between))
        between = np.ma.filled(apart.mean(axis=1, keepdims=True), np.nan)
    width = max(5, 48 // len(others) - 1)
    rows, top = zip(audit.domains, d.from_uniform, between, strict=True), float(np.nanmax(between, initial=0.3))
    return Table(
        title="Label divergence of the training set in bits: 0 identical, 1 no class in common",
        header=["domain", "uniform", *(cut(domain, width) for domain in others)],
        rows=[[name, number(own, 2), *(number(value, 2) for value in row)] for name, own, row in rows],
        shades={(i, j + 2): value / top for (i, j), value in np.ndenumerate(between) if value > 0},
        note=f"mean {d.imbalance:.2f} from uniform, {d.mismatch:.2f} between domains; "
        f"{d.chance_mismatch:.2f} expected by chance",
    )


def _cropped(table: Table) -> Table:
    """The first rows, with names that fit the terminal."""
    rows: list[Sequence[str]] = [[cut(row[0], 18), *row[1:]] for row in table.rows[:ROWS]]
    rest = len(table.rows) - ROWS
    if rest > 0:
        rows.append([f"and {rest:,} more", *[""] * (len(table.header) - 1)])
    return Table(title=table.title, header=table.header, rows=rows, note=table.note)


def _divergence(audit: Audit) -> Iterator[Block | None]:
    if not audit.train.any():
        return
    d = audit.divergence
    yield Heading("Label divergence")
    yield _distances(audit)
    rows = [[name, f"{one:.2f}", f"{two:.2f}"] for name, (one, two) in PAPER_SETS.items()]
    yield Table(
        title="Label divergence compared with the paper's data sets",
        header=["", "from uniform", "between domains"],
        rows=[[audit.name, f"{d.imbalance:.2f}", f"{d.mismatch:.2f}"], *rows],
        note="The two terms of the paper's appendix for the training labels, as Jensen–Shannon divergence in bits (0 "
        "for identical distributions, 1 for no class in common), averaged over domains and over pairs of domains. Any "
        "long tail gives rise to the first; the second arises between domains and is what BoDA addresses. "
        f"Summed as in the paper, Σ div(p_d ‖ U) + Σ div(p_d ‖ p_d'), they are {d.total:.2f}.",
    )


def _groups(audit: Audit) -> list[Block]:
    groups = audit.groups
    if groups is None:
        return []
    number = f"{several(groups.groups, 'group')}, {groups.with_several:,} of two or more samples"
    sizes = f"the median group has {several(groups.median, 'sample')}, the largest {groups.largest:,}"
    numbers = {"splits": groups.several_splits, "domains": groups.several_domains, "classes": groups.several_classes}
    spread = ", ".join(f"{n:,} in several {what}" for what, n in numbers.items())
    kept = "A group stays together in our split: samples that the data name as a group, and duplicates."
    return [Heading("Groups"), Text(f"{number}: {sizes}; {spread}. {kept}")]


def _leaking(audit: Audit, dataset: DomainDataset) -> Iterator[Block]:
    if audit.groups is None or not audit.kind.picture or not audit.groups.leaking:
        return
    yield Text("The first groups in several splits, with the split of each image:")
    yield from _galleries(dataset, audit.groups.leaking, audit.groups.several_splits)


def _duplicates(audit: Audit, dataset: DomainDataset) -> Iterator[Block]:
    suspicious = [duplicate for duplicate in audit.duplicates if duplicate.across]
    if not audit.kind.picture or not suspicious:
        return
    yield Heading("Duplicate images")
    yield Text(
        "= joins exact duplicates, ~ images that look alike, perhaps resized, mirrored, cropped or marked; differences "
        "are in brackets."
    )
    yield from _galleries(dataset, suspicious, len(suspicious), "; `crosstail audit --json` lists all")


def _galleries(dataset: DomainDataset, groups: Sequence[SampleGroup], total: int, where: str = "") -> Iterator[Block]:
    yield from (Gallery(members(group), pictures(dataset, group)) for group in groups[:GROUPS])
    if total > GROUPS:
        yield Text(f"and {several(total - GROUPS, 'more group')}{where}.", dim=True)


def _inputs(audit: Audit) -> list[Block]:
    inputs = audit.inputs
    if isinstance(inputs, EmbeddingInputs):
        low, median, high = inputs.norms
        size = f"{several(inputs.width, 'feature')} in {inputs.dtype}"
        return [
            Heading(f"{audit.kind.noun}s".capitalize()),
            Text(f"{size}, with norms from {low:.3g} to {high:.3g} (median {median:.3g})."),
        ]
    table = Table(
        title="Images: width × height by area, modes and formats",
        header=["domain", "images", "smallest", "median", "largest", "modes", "formats"],
        rows=[[d, *_image_cells(s)] for d, s in zip(audit.domains, inputs.per_domain, strict=True)],
    )
    return [table]


def _image_cells(summary: ImageSummary) -> list[str]:
    sizes = [f"{w}×{h}" if w else "–" for w, h in (summary.smallest, summary.median, summary.largest)]
    return [f"{summary.images:,}", *sizes, _tally(summary.modes), _tally(summary.formats)]


def _tally(found: dict[str, int]) -> str:
    """The names, with counts if there are several.

    >>> _tally({"RGB": 9}), _tally({"RGB": 9, "L": 1})
    ('RGB', 'RGB 9, L 1')
    """
    return ", ".join(f"{name} {n:,}" if len(found) > 1 else name for name, n in found.items()) or "–"
