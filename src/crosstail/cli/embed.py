"""crosstail embed: images to vectors, once."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._options import named_values
from crosstail.cli._progress import progress_bar


def embed(
    dataset: Annotated[
        str, typer.Argument(help="A folder, a manifest, an .npz file of images, hf:NAME, or a data set's name.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write: x, y, domain, split, domains and classes.")],
    backbone: Annotated[str, typer.Option(help="See [b]crosstail list backbones[/].")] = "efficientnet_lite0",
    weights: Annotated[str | None, typer.Option(help="A .safetensors or .pth file of the backbone's weights.")] = None,
    resolution: Annotated[int | None, typer.Option(help="Pixels; by default what the backbone was trained on.")] = None,
    views: Annotated[int, typer.Option(help="Embed so many augmented views beside each image.")] = 0,
    labels: Annotated[list[str] | None, typer.Option(help="Label profile, as of [b]crosstail fit[/].")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A manifest's column, as [b]domain=site[/]; repeatable.")
    ] = None,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that cannot be read.")] = False,
    data_seed: Annotated[int, typer.Option(help="Of what is random in the data, such as the split.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Images at a time.")] = 32,
) -> None:
    """Embed every image once with a pretrained network, for training on the vectors.

    Example: [b]crosstail embed photos/ --backbone resnet50 --out photos.npz[/], then [b]crosstail fit photos.npz[/]
    """
    if out.suffix != ".npz":
        raise ValueError(f"--out {out}: expected a name that ends in .npz")

    from crosstail import data
    from crosstail.training import RunSpec, embedding
    from crosstail.training.memory import lower_if_short
    from crosstail.training.inputs import frozen_backbone, input_shape, prepare_as_split, sized

    spec = RunSpec(
        dataset=dataset,
        labels=tuple(labels) if labels else None,
        data_seed=data_seed,
        skip_broken=skip_broken,
        columns=named_values("--column", column),
        backbone=backbone,
        weights=weights,
        resolution=resolution,
        freeze=True,
        views=views,
    )
    images = sized(spec, prepare_as_split(spec))
    frozen = frozen_backbone(spec, input_shape(images))
    assert frozen is not None
    console = Console(stderr=True)
    lower = f"--batch-size (now {batch_size}), --resolution (now {images.x.shape[1]})"
    with progress_bar(console) as progress, lower_if_short(lower):
        report = partial(progress, "embedding")
        x = embedding.embed(images, frozen, views=views, batch_size=batch_size, progress=report)
    data.save_arrays(images.with_x(x), out)
    for note in images.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    shape = " × ".join(f"{n:,}" for n in x.shape)
    following = f"crosstail fit {shlex.quote(str(out))} --out run"
    console.print(f"{shape} numbers in {out}. Next: {following}", markup=False, highlight=False, soft_wrap=True)
