"""crosstail export: a model as one file for other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.console import Console

from crosstail.cli._imports import import_torch
from crosstail.cli._parameters import Json, Run, Site, Trust
from crosstail.cli._progress import progress_bar
from crosstail.training.existing import existing_run


def export(
    run: Run,
    /,
    *,
    out: Path,
    format: Literal["onnx", "torch"] = "onnx",
    site: Site = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Export the whole model, from inputs to probabilities, and check that it agrees with the run.

    Example: `crosstail export run --out model.onnx`

    Args:
        out: File to write; FILE.json beside it describes inputs and outputs, FILE.md is a model card.
        format: ONNX, or a .pt2 file for torch.export.
    """
    existing_run(run)
    import_torch()

    from crosstail.prediction.export import Differs
    from crosstail.workflows.export import export

    console = Console(stderr=True, markup=False)
    try:
        with progress_bar(console) as progress:
            found = export(run, out=out, format=format, site=site, trust=trust, progress=progress)
    except Differs as error:
        console.print(f"error: {error}")
        raise SystemExit(1) from None
    for note in found.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if as_json:
        print(json.dumps(asdict(found.check)))
        return
    difference = f"probabilities that differ by at most {found.check.largest_difference:.1g}"
    size = f"{out}: {out.stat().st_size / 1e6:.1f} MB, described in {out}.md"
    compared = (
        f"On {found.check.samples} of {found.check.inputs}, it predicts the same classes as the run, and {difference}."
    )
    Console().print(f"{size}\n{compared}", markup=False, highlight=False, soft_wrap=True)
