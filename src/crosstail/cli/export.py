"""crosstail export: a model as one file for other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from rich.console import Console

from crosstail.cli._next import say_all
from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import Json, Run, described, import_torch
from crosstail.training.existing import existing_run


@described
def export(
    run: Run,
    /,
    *,
    out: Path,
    format: Literal["onnx", "torch"] = "onnx",
    site: str | None = None,
    trust: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail export run --out model.onnx`"""
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
    say_all(console, "note", found.notes)
    if as_json:
        print(json.dumps(asdict(found.check)))
        return
    difference = f"probabilities that differ by at most {found.check.largest_difference:.1g}"
    size = f"{out}: {out.stat().st_size / 1e6:.1f} MB, described in {out}.md"
    compared = f"On {found.check.samples} of {found.check.inputs}, it predicts the same classes as the run"
    Console().print(f"{size}\n{compared}, and {difference}.", markup=False, highlight=False, soft_wrap=True)
