"""Look at a data set before any training."""

from dataclasses import replace

import numpy as np

from crosstail.data.dataset import SPLITS, DomainDataset
from crosstail.data.images.files import ImageFiles
from crosstail.data.images.same_content import equal, equal_files
from crosstail.report.audit.advice import advice
from crosstail.report.audit.divergence import label_divergence
from crosstail.report.audit.duplicates import alike, describe, equal_rows, row_names
from crosstail.report.audit.inputs import (
    EmbeddingInputs,
    ImageInputs,
    Report,
    read_embeddings,
    read_image_array,
    read_image_files,
)
from crosstail.report.audit.result import Audit

ALIKE_LIMIT = 40_000  # images; comparing all with all takes most of a minute there, and grows with the square


def audit(
    dataset: DomainDataset, *, many: int = 100, few: int = 20, look_alike: bool = True, progress: Report | None = None
) -> Audit:
    """Count the pairs, measure the label distributions, open the inputs and look for duplicates.

    Image files are looked at as files, arrays as they are. With `look_alike`, images that are almost the same are
    looked for too, if there are 40,000 or fewer.
    """
    report = progress or (lambda what, done, total: None)
    x = dataset.x
    inputs: ImageInputs | EmbeddingInputs
    thumbnails = None
    look_alike = look_alike and dataset.is_image and len(dataset) <= ALIKE_LIMIT
    where = dataset.domain, dataset.num_domains
    names = row_names(dataset, np.arange(len(dataset)))
    if type(x) is ImageFiles:  # a subclass may have its images elsewhere than in files
        inputs, thumbnails = read_image_files(x.root, names, *where, thumbnails=look_alike, progress=report)
        broken = {name for name, _ in inputs.broken}  # two empty files are equal, but not the same image
        exact = equal_files({row: x.root / name for row, name in enumerate(names) if name not in broken}, report)
    elif dataset.is_image:
        inputs, thumbnails, hashes = read_image_array(x, names, *where, thumbnails=look_alike, progress=report)
        exact = equal(hashes.items())
    else:
        inputs, exact = read_embeddings(x), equal_rows(x, report)
    near = [] if thumbnails is None else _not_all_equal(alike(thumbnails, report), exact)
    counts = {split: dataset.counts(split) for split in SPLITS}
    found = Audit(
        name=dataset.name,
        domains=dataset.domains,
        classes=dataset.classes,
        counts=counts,
        divergence=label_divergence(counts["train"]),
        inputs=inputs,
        duplicates=(*describe(exact, dataset, exact=True), *describe(near, dataset, exact=False)),
        alike_searched=look_alike,
        many=many,
        few=few,
        notes=dataset.source_notes,
    )
    return replace(found, advice=tuple(advice(found)))


def _not_all_equal(groups: list[list[int]], exact: list[list[int]]) -> list[list[int]]:
    """Without the groups whose members all have the same content."""
    content = {row: group[0] for group in exact for row in group}
    return [group for group in groups if len({content.get(row, row) for row in group}) > 1]
