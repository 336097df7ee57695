"""crosstail export: a model as one file for other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Annotated[
        Path,
        typer.Option(help="The file; beside it are FILE.json, what it takes and gives, and FILE.md, a model card."),
    ],
    format: Annotated[str, typer.Option(help="onnx, or torch: a .pt2 file of torch.export.")] = "onnx",
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that the run brings along.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print how it was checked as JSON.")] = False,
) -> None:
    """Write the whole model, from inputs to probabilities, and check that it says what the run says.

    Example: [b]crosstail export run --out model.onnx[/]
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
        raise typer.Exit(1) from None
    description = json.loads(out.with_name(f"{out.name}.json").read_text(encoding="utf-8"))
    parts = [exported_part(description), *card_parts(run)]
    write_card(out.with_name(f"{out.name}.md"), title_of(RunFolder(run).spec()), parts)
    if missing:
        console.print(f"note: the run's own data are not at hand ({missing})", markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps(asdict(check)))
        return
    same = f"the same classes, probabilities to {check.largest_difference:.1g}"
    text = f"{out}: {out.stat().st_size / 1e6:.1f} MB; on {check.samples} of {check.inputs} {same}. See {out}.md"
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
