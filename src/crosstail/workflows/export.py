"""A model as one file for other programs."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crosstail.prediction import export as exporting
from crosstail.prediction.export import BATCH, SUFFIXES, Check, example_of, has_onnx
from crosstail.prediction.sets import Per
from crosstail.prediction.speed import Need, need_of
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
    prior: str | None = None,
    coverage: float | None = None,
    per: Per = "pair",
    trust: bool = False,
    progress: Progress = silent,
) -> Exported:
    """Export the whole model, from inputs to the answers of `predict`, and check that it agrees with the run.

    The file takes inputs and, unless one is fixed, the site of each. It gives probabilities, with a coverage also
    prediction sets, and for critical classes that have to reach a recall also alarms.

    Args:
        run: Folder of a finished run.
        out: File to write; FILE.json beside it describes inputs and outputs, FILE.md is a model card.
        format: ONNX, or a .pt2 file for torch.export.
        site: Domain of the run that all inputs are from.
        prior: How frequent the classes are, as in `predict`: `uniform`, `train` or a .csv file.
        coverage: Add prediction sets that contain the true class with this probability.
        per: Groups for which the coverage holds separately.
        trust: Run the Python files that are stored with the run.
        progress: Called as the two are compared.

    Raises:
        crosstail.prediction.export.Differs: The file and the run predict different things.
    """
    run = existing_run(run)
    trained = Run(run)
    how: dict[str, Any] = {"site": site, "prior": prior, "coverage": coverage, "per": per, "trust": trust}
    check = exporting.export(run, out, format, dataset=trained.dataset, **how, progress=progress)
    description = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    card = model_card(trained, Certainty.of(trained), duplicates(trained), description)
    write_whole(out.with_name(f"{out.name}.md"), markdown.render(card).encode())
    missing = f"the run's data, {trained.result.spec.dataset}, are missing or have changed"
    return Exported(out, check, [*check.notes, *[missing] * (trained.dataset is None)])


def needs(run: Path, *, trust: bool = False, progress: Progress = silent) -> dict[str, Need]:
    """What files of a model would need on this machine, by format.

    Args:
        run: Folder of a finished run.
        trust: Run the Python files that are stored with the run.
        progress: Called as files are compared with the run.
    """
    run, found = existing_run(run), {}
    with tempfile.TemporaryDirectory() as folder:
        for format, suffix in SUFFIXES.items():
            if format == "torch" or has_onnx():
                exporting.export(run, file := Path(folder, f"model{suffix}"), format, trust=trust, progress=progress)
                found[format] = need_of(file, example_of(run, BATCH, trust))
    return found
