"""Duplicates among the samples of a run, for its pages."""

import msgspec

from crosstail.data import examine
from crosstail.data.dataset import UNUSED
from crosstail.reports.audit.findings import exact_findings
from crosstail.reports.audit.groups import describe
from crosstail.storage import read_json, write_json
from crosstail.training.run import Run

AUDIT = "audit.json"


class AuditFile(msgspec.Struct, frozen=True):
    """Content of audit.json."""

    duplicates: list[str]


def duplicates(run: Run) -> list[str]:
    """Sentences on duplicate samples; the search is stored in the folder, for when the data are gone."""
    file = run.path / AUDIT
    if file.exists():
        return read_json(file, AuditFile).duplicates
    if run.dataset is None:
        return []
    dataset = run.dataset.plain()
    try:
        groups = examine(dataset.x).same()
        used = [[row for row in group if dataset.split[row] != UNUSED] for group in groups]
    except (ValueError, OSError):  # an image that cannot be read
        return []
    found = describe([group for group in used if len(group) > 1], dataset, exact=True)
    sentences = [finding.text for finding in exact_findings(found, dataset.kind)]
    write_json(file, AuditFile(sentences))
    return sentences
