"""A model as one file for other programs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosstail.prediction import export as exporting
from crosstail.prediction.export import Check
from crosstail.progress import Progress, silent
from crosstail.reports.document import markdown
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.duplicates import duplicates
from crosstail.reports.run.model_card import model_card
from crosstail.storage import write_whole
from crosstail.training.existing import existing_run
from crosstail.training.run import Run


@dataclass(frozen=True)
class Exported:
    """An exported model, described in FILE.json and FILE.md beside it."""

    out: Path
    check: Check
    """How it compares with the run."""
    notes: Sequence[str]


def export(
    run: Path,
    *,
    out: Path,
    format: Literal["onnx", "torch"] = "onnx",
    site: str | None = None,
    trust: bool = False,
    progress: Progress = silent,
) -> Exported:
    """Export the whole model, from inputs to probabilities, and check that it agrees with the run.

    Args:
        run: Folder of a finished run.
        out: File to write; FILE.json beside it describes inputs and outputs, FILE.md is a model card.
        format: ONNX, or a .pt2 file for torch.export.
        site: Domain of the run that the inputs are from; without it, the domain is unknown.
        trust: Run the Python files that are stored with the run.
        progress: Called as the two are compared.

    Raises:
        crosstail.prediction.export.Differs: The file and the run predict different things.
    """
    run = existing_run(run)
    trained, notes = Run(run), list[str]()
    check = exporting.export(run, out, format, dataset=trained.dataset, site=site, trust=trust, progress=progress)
    description = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    if site and description["site"] is None:
        notes.append(f"{trained.result.spec.method} does not use the site")
    card = model_card(trained, Certainty.of(trained), duplicates(trained), description)
    write_whole(out.with_name(f"{out.name}.md"), markdown.render(card).encode())
    if trained.dataset is None:
        notes.append(f"the run's data, {trained.result.spec.dataset}, are missing or have changed")
    return Exported(out, check, notes)
