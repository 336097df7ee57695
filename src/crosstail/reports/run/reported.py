"""A finished run with everything that its report shows, in memory."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from crosstail.data import DomainDataset, examine
from crosstail.data.dataset import UNUSED
from crosstail.metrics.calibration import Calibration
from crosstail.reports.audit.duplicates import describe
from crosstail.reports.audit.findings import exact_findings
from crosstail.reports.run.group_metrics import Tested
from crosstail.storage import read_json, write_json
from crosstail.training.fit import Run
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import load_inputs
from crosstail.training.predictions import Predictions
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import Evaluation, RunResult

AUDIT = "audit.json"


class AuditFile(msgspec.Struct, frozen=True):
    """Content of audit.json."""

    duplicates: list[str]


@dataclass(frozen=True)
class ReportedRun:
    """A result with what led to it."""

    folder: Path
    result: RunResult
    records: Sequence[Evaluation] = ()
    predictions: Predictions | None = None
    dataset: DomainDataset | None = None
    """As loaded and split, before any embedding; None if it is gone or has changed since."""
    probabilities: Probabilities | None = None
    calibration: Calibration | None = None

    @cached_property
    def tested(self) -> Tested | None:
        """Metrics of its test samples, if it has stored their probabilities."""
        kept, given = self.probabilities, self.calibration
        if kept is None or given is None or not kept.test.any():
            return None
        return Tested.of(kept, given, self.result.domains, self.result.classes)

    def duplicates(self) -> list[str]:
        """Sentences on duplicate samples; the search is stored in the folder, for when the data are gone."""
        file = self.folder / AUDIT
        if file.exists():
            return read_json(file, AuditFile).duplicates
        if self.dataset is None:
            return []
        dataset = self.dataset.plain()
        try:
            groups = examine(dataset.x).same()
            used = [[row for row in group if dataset.split[row] != UNUSED] for group in groups]
        except (ValueError, OSError):  # an image that cannot be read
            return []
        found = exact_findings(
            describe([group for group in used if len(group) > 1], dataset, exact=True),
            dataset.kind,
        )
        sentences = [finding.text for finding in found]
        write_json(file, AuditFile(sentences))
        return sentences


def reported(run: Run) -> ReportedRun:
    """A run that was just trained, or found finished, with its data in memory."""
    folder = run.folder
    about = (folder.path, run.result, folder.records(), run.predictions, run.inputs.raw, run.probabilities)
    return ReportedRun(*about, folder.calibration())


def read_run(path: Path) -> ReportedRun:
    """Read a finished run from its folder, and its data if they are there and unchanged."""
    folder = RunFolder(path)
    result = folder.finished_result()
    dataset = None
    with suppress(OSError, ValueError):
        found = load_inputs(result.spec).raw
        dataset = found if found.checksum == result.data.checksum else None
    about = (path, result, folder.records(), Predictions.load(folder), dataset, Probabilities.load(folder))
    return ReportedRun(*about, folder.calibration())
