"""crosstail fit: train one model."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._options import named
from crosstail.cli._progress import progress_bar
from crosstail.cli._tables import folds_table, result_table

SUITABLE = {"files": "efficientnet_lite0", "images": "small_cnn", "vectors": "mlp"}


def fit(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A folder ROOT/<domain>/<class>/<image>, a .csv or .parquet manifest, an .npz file, hf:NAME, or a "
            "name of [b]crosstail list datasets[/]."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; the same command again goes on or shows the result.")],
    algorithm: Annotated[str, typer.Option(help="See [b]crosstail list algorithms[/].")] = "boda",
    decouple: Annotated[bool, typer.Option("--decouple", help="Train the classifier again, class-balanced.")] = False,
    backbone: Annotated[
        str | None,
        typer.Option(help="See [b]crosstail list backbones[/]; by default what suits the data."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A .safetensors or .pth file of the backbone's weights, or the word random.")
    ] = None,
    resolution: Annotated[int | None, typer.Option(help="Pixels; by default what the backbone was trained on.")] = None,
    freeze: Annotated[
        bool | None,
        typer.Option(
            "--freeze/--finetune",
            help="Embed each image once and train a small network on the vectors, or train the whole backbone. "
            "By default image files are embedded by a pretrained backbone.",
        ),
    ] = None,
    head: Annotated[str, typer.Option(help="On frozen features: mlp or linear.")] = "mlp",
    views: Annotated[int, typer.Option(help="With --freeze: embed so many augmented views beside each image.")] = 0,
    width: Annotated[int | None, typer.Option(help="Width of the network that is trained.")] = None,
    protocol: Annotated[
        str, typer.Option(help="mdlt: train on all domains; dg: leave one out and test on it, each in turn.")
    ] = "mdlt",
    unseen: Annotated[str | None, typer.Option(help="With dg: leave out this domain only.")] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="Label profile, once or per domain: uniform, forward:50, backward:50, step:10, step:9!7,8."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A manifest's column, as [b]domain=site[/]; repeatable.")
    ] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")] = False,
    augment: Annotated[
        bool | None,
        typer.Option("--augment/--no-augment", help="Crop, flip and recolour; by default when finetuning own images."),
    ] = None,
    hp: Annotated[list[str] | None, typer.Option(help="A hyperparameter, as [b]name=value[/]; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Of the weights and the batches.")] = 0,
    data_seed: Annotated[int, typer.Option(help="Of what is random in the data, such as the split.")] = 0,
    steps: Annotated[int | None, typer.Option(help="By default as the data sheet says, or 1,000.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Per domain; default: the data sheet's, or 24.")] = None,
    evaluations: Annotated[int, typer.Option(help="How often to evaluate and write a checkpoint.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model that works for every (domain, class) pair.

    Example: [b]crosstail fit photos/ --algorithm boda --decouple --out run[/]
    """
    from crosstail import algorithms, backbones, data, protocols
    from crosstail.training import RunSpec

    console = Console(stderr=True)
    sheet = data.sheet_of(dataset)
    columns = named("--column", column)
    kind = data.kind_of(dataset, columns)
    if backbone is None:
        backbone = "efficientnet_lite0" if freeze else SUITABLE[kind]
    network = backbones.pretrained(backbone) if weights != backbones.RANDOM else None
    if freeze is None:
        freeze = kind == "files" and network is not None
    given = named("--hp", hp)
    typed = algorithms.parse(algorithms.find(algorithm).Hparams, given)
    chosen = {name: getattr(typed, name) for name in given}  # 1e-3 and 0.001 are the same run
    spec = RunSpec(
        dataset=dataset,
        algorithm=algorithm,
        labels=tuple(labels) if labels else None,
        data_seed=data_seed,
        protocol=protocol,
        unseen=unseen,
        skip_broken=skip_broken,
        columns=columns,
        augment=(kind == "files" and not freeze) if augment is None else augment,
        backbone=backbone,
        weights=weights,
        resolution=resolution,
        freeze=freeze,
        head=head,
        views=views,
        width=width,
        hparams={**network.hparams, **chosen} if network and not freeze else chosen,
        decouple=decouple,
        seed=seed,
        steps=steps if steps is not None else (sheet.steps if sheet else 1000),
        batch_size=batch_size if batch_size is not None else (sheet.batch_size if sheet else 24),
        evaluations=evaluations,
    )
    plans = protocols.folds(spec)
    results = []
    for plan in plans:
        place = out if len(plans) == 1 else out / str(plan.unseen)
        with progress_bar(console, f"unseen {plan.unseen}:" if plan.unseen else "") as progress:
            results.append(protocols.run(plan, place, progress))
    if as_json:
        print(json.dumps(results[0] if len(results) == 1 else results))
        return
    shown = Console()
    for note in results[0]["data"]["notes"]:
        shown.print(f"note: {note}", markup=False)
    if len(results) > 1:
        shown.print(folds_table(results))
        return
    shown.print(result_table(results[0]))
    run = shlex.quote(str(out))
    shown.print(f"Next: crosstail predict {run} FILES, or crosstail graph {run}", markup=False, highlight=False)
