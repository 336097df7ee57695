"""Exact duplicates in the data of a run, stored in its folder for the model card."""

from pathlib import Path

from crosstail import protocols
from crosstail.report.audit.duplicates import describe, equal_inputs
from crosstail.report.audit.findings import exact_findings
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder
from crosstail.training.run import sized

FILE = "audit.json"


def duplicates_of(run: Path) -> list[str]:
    """Sentences on duplicates, searched for once, while the data are available and unchanged."""
    folder = RunFolder(run)
    if not (run / FILE).exists():
        result = folder.read_json("result.json")
        spec = RunSpec.from_json(result["spec"])
        try:
            raw = sized(spec, protocols.prepare(spec))
            if raw.checksum != result["data"]["checksum"]:
                return []
            dataset = raw.plain()
            groups = equal_inputs(dataset, lambda what, done, total: None)
        except (ValueError, OSError):
            return []
        found = exact_findings(describe(groups, dataset, exact=True), "image" if dataset.is_image else "row")
        folder.write_json(FILE, {"duplicates": [finding.text for finding in found]})
    sentences: list[str] = folder.read_json(FILE)["duplicates"]
    return sentences
