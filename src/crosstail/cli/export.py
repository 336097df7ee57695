"""crosstail export: a model as one file for other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.console import Console

from crosstail.cli._parameters import Json, Run, Trust
from crosstail.cli._progress import progress_bar


def export(
    run: Run, /, *, out: Path, format: Literal["onnx", "torch"] = "onnx", trust: Trust = False, as_json: Json = False
) -> None:
    """Export the whole model, from inputs to probabilities, and check that it agrees with the run.

    Example: `crosstail export run --out model.onnx`

    Args:
        out: File to write; FILE.json beside it describes inputs and outputs, FILE.md is a model card.
        format: ONNX, or a .pt2 file for torch.export.
    """
    from crosstail import protocols
    from crosstail.prediction.export import Differs
    from crosstail.prediction.export import export as write
    from crosstail.report.run.model_card import card_parts, exported_part, title_of, write_card
    from crosstail.training.folder import RunFolder

    console = Console(stderr=True)
    try:
        dataset, missing = protocols.prepare(RunFolder(run).spec()), ""
    except (ValueError, OSError) as error:
        dataset, missing = None, str(error)
    try:
        with progress_bar(console) as progress:
            check = write(run, out, format, dataset=dataset, trust=trust, progress=progress)
    except Differs as error:
        console.print(f"error: {error}", markup=False)
        raise SystemExit(1) from None
    description = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    parts = [exported_part(description), *card_parts(run)]
    write_card(out.with_name(f"{out.name}.md"), title_of(RunFolder(run).spec()), parts)
    if missing:
        console.print(f"note: the run's own data are not available ({missing})", markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps(asdict(check)))
        return
    same = f"the same classes, probabilities to {check.largest_difference:.1g}"
    text = f"{out}: {out.stat().st_size / 1e6:.1f} MB; on {check.samples} of {check.inputs} {same}. See {out}.md"
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
