"""crosstail fit: train one model."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail import discovery
from crosstail.cli._progress import progress_bar
from crosstail.cli._tables import result_table


def fit(
    dataset: Annotated[
        str, typer.Argument(help="A data set's name (see [b]crosstail list datasets[/]) or an .npz file.")
    ],
    out: Annotated[Path, typer.Option(help="The run's folder; the same command again goes on or shows the result.")],
    algorithm: Annotated[str, typer.Option(help="See [b]crosstail list algorithms[/].")] = "boda",
    decouple: Annotated[bool, typer.Option("--decouple", help="Train the classifier again, class-balanced.")] = False,
    backbone: Annotated[str | None, typer.Option(help="See [b]crosstail list backbones[/].")] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Embed each image once, train an MLP on the vectors.")
    ] = False,
    width: Annotated[int | None, typer.Option(help="Width of the network that is trained.")] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="Label profile, once or per domain: uniform, forward:50, backward:50, step:10, forward:50!8,9."
        ),
    ] = None,
    hp: Annotated[
        list[str] | None, typer.Option(help="A hyperparameter, as [b]name=value[/]; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the weights and the batches.")] = 0,
    data_seed: Annotated[int, typer.Option(help="Of what is random in the data.")] = 0,
    steps: Annotated[int | None, typer.Option(help="By default as the data sheet says.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Per domain; by default as the data sheet says.")] = None,
    evaluations: Annotated[int, typer.Option(help="How often to evaluate and write a checkpoint.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model that works for every (domain, class) pair.

    Example: [b]crosstail fit digits --algorithm boda --decouple --freeze --backbone efficientnet_lite0 --out run[/]
    """
    from crosstail import algorithms, data
    from crosstail.training import RunSpec
    from crosstail.training import fit as run

    console = Console(stderr=True)
    sheet = None
    if dataset in discovery.names(data.BENCHMARKS):
        sheet = discovery.find(data.BENCHMARKS, dataset, "data set").SHEET
    given = dict(_pair(text) for text in hp or [])
    typed = algorithms.parse(algorithms.find(algorithm).Hparams, given)
    spec = RunSpec(
        dataset=dataset,
        algorithm=algorithm,
        labels=tuple(labels) if labels else None,
        data_seed=data_seed,
        backbone=backbone or ("efficientnet_lite0" if freeze else "small_cnn"),
        freeze=freeze,
        width=width,
        hparams={name: getattr(typed, name) for name in given},  # 1e-3 and 0.001 are the same run
        decouple=decouple,
        seed=seed,
        steps=steps if steps is not None else (sheet.steps if sheet else 1000),
        batch_size=batch_size if batch_size is not None else (sheet.batch_size if sheet else 24),
        evaluations=evaluations,
    )
    with progress_bar(console) as progress:
        result = run(spec, out, progress)
    if as_json:
        print(json.dumps(result))
    else:
        Console().print(result_table(result))
        Console().print(f"Next: crosstail graph {out}", markup=False, highlight=False)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise ValueError(f"--hp {text!r}: expected name=value, for example --hp lr=0.001")
    return name, value
