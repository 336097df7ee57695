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
    run = existing_run(run)
    import_torch()

    from crosstail.prediction.export import Differs
    from crosstail.prediction.export import export as write
    from crosstail.reports.document import markdown
    from crosstail.reports.run.model_card import model_card
    from crosstail.reports.run.reported import read_run
    from crosstail.storage import write_whole

    console = Console(stderr=True, markup=False)
    reported = read_run(run)
    try:
        with progress_bar(console) as progress:
            check = write(run, out, format, dataset=reported.dataset, site=site, trust=trust, progress=progress)
    except Differs as error:
        console.print(f"error: {error}")
        raise SystemExit(1) from None
    description = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    if site and description["site"] is None:
        console.print(f"note: {reported.result.spec.method} does not use the site", soft_wrap=True)
    card = model_card(reported, exported=description)
    write_whole(out.with_name(f"{out.name}.md"), markdown.render(card).encode())
    if reported.dataset is None:
        source = reported.result.spec.dataset
        console.print(f"note: the run's data, {source}, are missing or have changed", soft_wrap=True)
    if as_json:
        print(json.dumps(asdict(check)))
        return
    same = f"the same classes as the run, and probabilities that differ by at most {check.largest_difference:.1g}"
    size = f"{out}: {out.stat().st_size / 1e6:.1f} MB, described in {out}.md"
    text = f"{size}\nOn {check.samples} of {check.inputs}, it predicts {same}."
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
