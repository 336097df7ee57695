"""The words that fit and sweep share, and the spec that they make."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosstail.cli._options import named_values

if TYPE_CHECKING:  # importing torch takes seconds, and --help needs none of it
    from crosstail.training import RunSpec

SUITABLE = {"files": "efficientnet_lite0", "images": "small_cnn", "vectors": "mlp"}
SOURCES = (
    "A folder ROOT/<domain>/<class>/<image>, a .csv or .parquet manifest, an .npz file, hf:NAME, or a "
    "name of [b]crosstail list datasets[/]."
)
Backbone = Annotated[
    str | None, typer.Option(help="See [b]crosstail list backbones[/]; by default what suits the data.")
]
Weights = Annotated[
    str | None, typer.Option(help="A .safetensors or .pth file of the backbone's weights, or the word random.")
]
Resolution = Annotated[int | None, typer.Option(help="Pixels; by default what the backbone was trained on.")]
Freeze = Annotated[
    bool | None,
    typer.Option(
        "--freeze/--finetune",
        help="Embed each image once and train a small network on the vectors, or train the whole backbone. "
        "By default image files are embedded by a pretrained backbone.",
    ),
]
Head = Annotated[str, typer.Option(help="On frozen features: mlp or linear.")]
Views = Annotated[int, typer.Option(help="With --freeze: embed so many augmented views beside each image.")]
Width = Annotated[int | None, typer.Option(help="Width of the network that is trained.")]
Protocol = Annotated[
    str, typer.Option(help="mdlt: train on all domains; dg: leave one out and test on it, each in turn.")
]
Unseen = Annotated[str | None, typer.Option(help="With dg: leave out this domain only.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(help="Label profile, once or per domain: uniform, forward:50, backward:50, step:10, step:9!7,8."),
]
Column = Annotated[list[str] | None, typer.Option(help="A manifest's column, as [b]domain=site[/]; repeatable.")]
SkipBroken = Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")]
Augment = Annotated[
    bool | None,
    typer.Option("--augment/--no-augment", help="Crop, flip and recolour; by default when finetuning own images."),
]
DataSeed = Annotated[int, typer.Option(help="Of what is random in the data, such as the split.")]
Steps = Annotated[int | None, typer.Option(help="By default as the data sheet says, or 1,000.")]
BatchSize = Annotated[int | None, typer.Option(help="Per domain; default: the data sheet's, or 24.")]
Evaluations = Annotated[int, typer.Option(help="How often to evaluate and write a checkpoint.")]


def run_spec(
    dataset: str,
    *,
    backbone: str | None,
    weights: str | None,
    freeze: bool | None,
    hparams: dict[str, Any],
    labels: list[str] | None,
    column: list[str] | None,
    augment: bool | None,
    steps: int | None,
    batch_size: int | None,
    **others: Any,
) -> "RunSpec":
    """A spec, with what suits the data where nothing was said."""
    from crosstail import backbones, data
    from crosstail.training import RunSpec

    sheet = data.sheet_of(dataset)
    columns = named_values("--column", column)
    kind = data.kind_of(dataset, columns)
    if backbone is None:
        backbone = "efficientnet_lite0" if freeze else SUITABLE[kind]
    network = backbones.pretrained(backbone) if weights != backbones.RANDOM else None
    if freeze is None:
        freeze = kind == "files" and network is not None
    return RunSpec(
        dataset=dataset,
        labels=tuple(labels) if labels else None,
        columns=columns,
        augment=(kind == "files" and not freeze) if augment is None else augment,
        backbone=backbone,
        weights=weights,
        freeze=freeze,
        hparams=hparams,
        steps=steps if steps is not None else (sheet.steps if sheet else 1000),
        batch_size=batch_size if batch_size is not None else (sheet.batch_size if sheet else 24),
        **others,
    )
