"""An audit as one offline page."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from crosstail.data.dataset import DomainDataset
from crosstail.report.audit import charts, tables
from crosstail.report.audit.advice import CAVEAT, PAPER_SETS
from crosstail.report.audit.duplicates import Duplicate
from crosstail.report.audit.findings import findings, members
from crosstail.report.audit.inputs import EmbeddingInputs
from crosstail.report.audit.result import Audit
from crosstail.report.audit.wording import several
from crosstail.report.page import Page

EXAMPLES = 6  # of a finding
GROUPS = 12  # of duplicates, with pictures
SIDE = 96  # pixels of a picture


def write_page(path: Path, audit: Audit, dataset: DomainDataset) -> None:
    """Everything the audit found, with one sentence per figure that says what to see."""
    page = Page(f"{audit.name}: before any training")
    samples = [f"{int(table.sum()):,} for {name}" for name, table in zip(_SPLITS, audit.counts.values(), strict=True)]
    page.text(
        f"{several(audit.num_samples, 'image' if audit.is_image else 'embedding')}, "
        f"{several(len(audit.domains), 'domain')}, {several(len(audit.classes), 'class', 'classes')}, so "
        f"{several(audit.train.size, 'pair')}: {', '.join(samples)}."
    )
    page.heading("What to expect")
    for sentence in audit.advice:
        page.text(sentence)
    page.text(CAVEAT, dim=True)
    _findings(page, audit)
    _counts(page, audit)
    _divergence(page, audit)
    _pictures(page, audit, dataset)
    _inputs(page, audit)
    page.save(path)


_SPLITS = ("training", "validation", "test")


def _findings(page: Page, audit: Audit) -> None:
    found = findings(audit)
    page.heading("What to look at")
    if not found:
        page.text("Nothing stands out: no duplicates, no broken input, no rare or untested pair.")
    for finding in found:
        page.text(("Problem: " if finding.level == "problem" else "") + finding.text)
        if finding.examples:
            rest = len(finding.examples) - EXAMPLES
            shown = "; ".join(finding.examples[:EXAMPLES])
            page.text(shown + (f"; and {rest:,} more" if rest > 0 else ""), dim=True)


def _pictures(page: Page, audit: Audit, dataset: DomainDataset) -> None:
    suspicious = [d for d in audit.duplicates if {"class", "split", "domain"} & set(d.across)]
    if not audit.is_image or not suspicious:
        return
    page.heading("Images that occur twice")
    page.text(
        "= joins files or rows with the same content, ~ those that look almost the same (their grey thumbnails "
        "correlate by 0.995 or more); in brackets what differs."
    )
    for duplicate in suspicious[:GROUPS]:
        pictures = _thumbnails(dataset, duplicate)
        if pictures is None:
            page.text(members(duplicate), dim=True)
        else:
            page.images(pictures, members(duplicate), scale=1)
    rest = len(suspicious) - GROUPS
    if rest > 0:
        page.text(f"and {several(rest, 'more group')}; `crosstail audit --json` lists all.", dim=True)


def _thumbnails(dataset: DomainDataset, duplicate: Duplicate) -> NDArray[np.uint8] | None:
    rows = np.array([sample.row for sample in duplicate.samples[:4]])
    try:
        images: Any = np.asarray(dataset.x[rows])
    except (OSError, ValueError):  # a file that cannot be decoded is named, without a picture
        return None
    return np.stack([np.asarray(Image.fromarray(image).resize((SIDE, SIDE))) for image in images])


def _counts(page: Page, audit: Audit) -> None:
    page.heading("Training samples per pair")
    chart = charts.count_chart(audit) if audit.train.any() else None
    if chart is not None:
        page.chart(chart, f"Heat map of training samples per domain and class. {charts.count_finding(audit)}.")
    if len(audit.classes) > charts.NUMBERED:
        page.chart(charts.size_chart(audit), f"Bars: pairs by training samples. {charts.size_finding(audit)}.")
    page.table(tables.DOMAIN_COLUMNS, tables.domain_rows(audit))
    page.text(
        f"Pairs are many-shot with over {audit.many} training samples, medium-shot with over {audit.few}, few-shot "
        "with 1 or more, zero-shot with none.",
        dim=True,
    )


def _divergence(page: Page, audit: Audit) -> None:
    if not audit.train.any():
        return
    d = audit.divergence
    page.heading("How far the labels are from uniform, and from each other")
    page.text(
        "The two terms of the paper's appendix, of the training labels, as Jensen–Shannon divergence in bits: 0 for "
        "the same distribution, 1 for two that have no class in common. The first is what any long tail does; the "
        "second is what several domains add, and what BoDA is for."
    )
    page.chart(charts.uniform_chart(audit), f"Bars: divergence from uniform. {charts.uniform_finding(audit)}.")
    between = charts.between_chart(audit)
    if between is not None:
        page.chart(between, f"Matrix: divergence between domains. {charts.between_finding(audit)}.")
    rows = [[name, f"{one:.2f}", f"{two:.2f}"] for name, (one, two) in PAPER_SETS.items()]
    page.table(["", "from uniform", "between two"], [[audit.name, f"{d.imbalance:.2f}", f"{d.mismatch:.2f}"], *rows])
    page.text(
        "Means over the domains and over every two of them, beside the paper's sets. Their sum over all domains and "
        f"ordered pairs of domains, Σ div(p_d ‖ U) + Σ div(p_d ‖ p_d'), is {d.total:.2f}.",
        dim=True,
    )


def _inputs(page: Page, audit: Audit) -> None:
    page.heading("The inputs")
    if isinstance(audit.inputs, EmbeddingInputs):
        page.text(tables.embedding_sentence(audit.inputs))
        return
    page.table(tables.IMAGE_COLUMNS, tables.image_rows(audit))
    page.text("Width × height in pixels, by area.", dim=True)
