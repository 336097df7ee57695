"""Examine a data set before training."""

from dataclasses import replace

from crosstail.data.dataset import SPLITS, DomainDataset
from crosstail.data.examination import HEADER, PIXELS, equal, examine, look_alikes
from crosstail.data.images.look_alike import LIMIT
from crosstail.data.splits.gaps import group_columns
from crosstail.progress import Progress
from crosstail.reports.audit.advice import advice
from crosstail.reports.audit.divergence import label_divergence
from crosstail.reports.audit.groups import describe, group_facts
from crosstail.reports.audit.inputs import image_inputs, read_embeddings
from crosstail.reports.audit.result import Audit


def audit(
    dataset: DomainDataset, *, many: int = 100, few: int = 20, look_alike: bool = True, progress: Progress | None = None
) -> Audit:
    """Count the pairs, measure the label distributions, check the inputs and search for duplicates.

    With `look_alike`, near-duplicate images are searched for too, in data sets of up to 40,000 images.
    """
    report = progress or (lambda what, done, total: None)
    look_alike = look_alike and dataset.kind.picture and len(dataset) <= LIMIT
    examined = examine(dataset.x, PIXELS if look_alike else HEADER, report)
    exact = examined.same()
    near = equal(enumerate(look_alikes(dataset.x, report).tolist())) if look_alike else []
    content = {row: group[0] for group in exact for row in group}
    near = [group for group in near if len({content.get(row, row) for row in group}) > 1]  # not exact duplicates only
    counts = {split: dataset.counts(split) for split in SPLITS}
    found = Audit(
        name=dataset.name,
        domains=dataset.domains,
        classes=dataset.classes,
        counts=counts,
        divergence=label_divergence(counts["train"]),
        kind=dataset.kind,
        inputs=image_inputs(dataset, examined) if dataset.kind.picture else read_embeddings(dataset.x),
        duplicates=(*describe(exact, dataset, exact=True), *describe(near, dataset, exact=False)),
        alike_searched=look_alike,
        groups=group_facts(dataset),
        many=many,
        few=few,
        group_columns=tuple(group_columns(dataset)),
        same_names=dataset.same_names,
        notes=dataset.source_notes,
    )
    return replace(found, advice=tuple(advice(found)))
