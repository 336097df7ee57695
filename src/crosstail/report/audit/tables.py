"""Data first: what the figures of an audit show, as tables."""

import numpy as np
import pandas as pd

from crosstail.report.audit.inputs import EmbeddingInputs, ImageInputs, ImageSummary
from crosstail.report.audit.result import Audit
from crosstail.report.audit.wording import several
from crosstail.report.tables import label_table

EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def count_table(audit: Audit) -> pd.DataFrame:
    """One row per pair: domain, class, training count, shot group, and whether its cell is dark on a log scale."""
    table = label_table(audit.train, audit.domains, audit.classes)
    table["shot"] = audit.shots.ravel()
    table["dark"] = np.log(np.maximum(table["count"], 1)) > 0.6 * np.log(max(int(audit.train.max(initial=0)), 2))
    return table


def size_table(audit: Audit) -> pd.DataFrame:
    """How many pairs have so many training samples: one row per range of counts."""
    counts = audit.train.ravel()
    upper = [*EDGES, max(int(counts.max(initial=0)), EDGES[-1] + 1)]
    rows, low = [], 0
    for high in upper:
        inside = (counts >= low) & (counts <= high)
        name = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        rows.append((name if high != upper[-1] else f"over {EDGES[-1]:,}", int(inside.sum())))
        low = high + 1
    table = pd.DataFrame(rows, columns=["samples", "pairs"])
    last = int(np.flatnonzero(table["pairs"] > 0).max(initial=0))
    return table.iloc[: last + 1]


def uniform_table(audit: Audit) -> pd.DataFrame:
    """One row per domain that has training samples: divergence from uniform, effective classes, imbalance ratio."""
    d = audit.divergence
    table = pd.DataFrame(
        {
            "domain": audit.domains,
            "bits": d.from_uniform,
            "effective classes": d.effective_classes,
            "imbalance ratio": d.imbalance_ratio,
        }
    )
    return table[d.samples > 0]


def between_table(audit: Audit) -> pd.DataFrame:
    """One row per ordered two domains that have training samples: domain, other, bits."""
    there = np.flatnonzero(audit.divergence.samples > 0)
    rows = [(audit.domains[i], audit.domains[j], float(audit.divergence.between[i, j])) for i in there for j in there]
    return pd.DataFrame(rows, columns=["domain", "other", "bits"])


def domain_rows(audit: Audit) -> list[list[str]]:
    """Per domain: its name, training, validation and test samples, smallest and largest pair, pairs per shot group."""
    rows = []
    for d, domain in enumerate(audit.domains):
        sizes = audit.train[d][audit.train[d] > 0]
        span = f"{sizes.min():,}–{sizes.max():,}" if len(sizes) else "–"
        samples = [f"{int(table[d].sum()):,}" for table in audit.counts.values()]
        rows.append([domain, *samples, span, *(str(n) for n in audit.shot_counts(d).values())])
    return rows


DOMAIN_COLUMNS = ["domain", "train", "val", "test", "per pair", "many", "medium", "few", "zero"]


def image_rows(audit: Audit) -> list[list[str]]:
    """Per domain: its name, images, size of the smallest, median and largest, modes, formats."""
    if not isinstance(audit.inputs, ImageInputs):
        return []
    return [[d, *_image_cells(s)] for d, s in zip(audit.domains, audit.inputs.per_domain, strict=True)]


IMAGE_COLUMNS = ["domain", "images", "smallest", "median", "largest", "modes", "formats"]


def embedding_sentence(inputs: EmbeddingInputs) -> str:
    """Width, type and norms in a sentence."""
    low, median, high = inputs.norms
    return (
        f"Embeddings of {several(inputs.width, 'feature')} in {inputs.dtype}, with norms from {low:.3g} to {high:.3g} "
        f"(median {median:.3g})."
    )


def _image_cells(summary: ImageSummary) -> list[str]:
    sizes = [f"{w}×{h}" if w else "–" for w, h in (summary.smallest, summary.median, summary.largest)]
    return [f"{summary.images:,}", *sizes, _tally(summary.modes), _tally(summary.formats)]


def _tally(found: dict[str, int]) -> str:
    """The names, with their numbers where there are several.

    >>> _tally({"RGB": 9}), _tally({"RGB": 9, "L": 1})
    ('RGB', 'RGB 9, L 1')
    """
    return ", ".join(f"{name} {n:,}" if len(found) > 1 else name for name, n in found.items()) or "–"
