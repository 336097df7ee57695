"""What the audit finds in the data of a run that matters for its figures, kept in the run's folder."""

from pathlib import Path

import numpy as np

from crosstail import protocols
from crosstail.data import DomainDataset, ImageFiles
from crosstail.data.images.same_content import equal_files
from crosstail.report.audit.duplicates import describe, equal_rows, row_names
from crosstail.report.audit.findings import exact_findings
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import sized

FILE = "audit.json"


def duplicates_of(run: Path) -> list[str]:
    """Sentences on samples that occur twice; looked for once, while the data are at hand and as they were."""
    folder = RunFolder(run)
    if not (run / FILE).exists():
        result = folder.read_json("result.json")
        spec = RunSpec.from_json(result["spec"])
        try:
            raw = sized(spec, protocols.prepare(spec))
            if raw.checksum != result["data"]["checksum"]:
                return []
        except (ValueError, OSError):
            return []
        dataset = raw.plain()
        found = exact_findings(describe(_equal(dataset), dataset, exact=True), "image" if dataset.is_image else "row")
        folder.write_json(FILE, {"duplicates": [finding.text for finding in found]})
    sentences: list[str] = folder.read_json(FILE)["duplicates"]
    return sentences


def _equal(dataset: DomainDataset) -> list[list[int]]:
    x = dataset.x
    if not isinstance(x, ImageFiles):
        return equal_rows(x, lambda what, done, total: None)
    names = row_names(dataset, np.arange(len(dataset)))
    return equal_files({row: x.root / name for row, name in enumerate(names)})
