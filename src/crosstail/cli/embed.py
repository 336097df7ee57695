"""crosstail embed: turn images into vectors, once."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._checks import known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, say_next
from crosstail.cli._parameters import RowLauncher, RowWorkers
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Data, SampleOptions, option


def embed(
    dataset: Data,
    /,
    *,
    out: Path,
    backbone: str = "efficientnet_lite0",
    weights: Annotated[str | None, option("weights")] = None,
    resolution: Annotated[int | None, option("resolution")] = None,
    views: int = 0,
    options: Annotated[SampleOptions, Parameter(name="*")] = SampleOptions(),  # noqa: B008 - immutable
    batch_size: int = 32,
    launcher: RowLauncher = "inline",
    workers: RowWorkers = None,
) -> None:
    """Embed every image once with a pretrained network, to train on the vectors.

    Example: `crosstail embed photos/ --backbone resnet50 --out photos.npz`, then `crosstail fit photos.npz --out run`

    Args:
        out: The .npz file to write, with x, y, domain, split, groups if there are any, domains and classes.
        backbone: A name from `crosstail list backbones`.
        views: Number of augmented views embedded beside each image.
        batch_size: Images per forward pass.
    """
    if out.suffix != ".npz":
        raise ValueError(f"--out {out}: expected a name that ends in .npz")
    samples = options.spec(known_source(dataset))
    import_torch()

    from crosstail import data
    from crosstail.storage import scratch_array
    from crosstail.training import RunSpec, embedding
    from crosstail.training.inputs import load_inputs
    from crosstail.training.memory import lower_if_short
    from crosstail.training.resolve import resolve

    network: dict[str, Any] = {"backbone": backbone, "weights": weights, "resolution": resolution, "views": views}
    spec = resolve(RunSpec(**vars(samples), **network, freeze=True))
    console = Console(stderr=True, markup=False, highlight=False)
    with progress_bar(console) as progress:
        inputs = load_inputs(spec, data.load_source(spec, progress))
    images, frozen = inputs.raw, inputs.frozen
    assert frozen is not None
    lower = f"--batch-size (now {batch_size}), --resolution (now {images.x.shape[1]})"
    with scratch_array(out, (len(images), 1 + views, frozen.num_features)) as into:
        with progress_bar(console) as progress, lower_if_short(lower):
            report = partial(progress, "embedding")
            if launcher == "ray":
                x = embedding.embed_on_ray(images, frozen, views, batch_size, workers, report, into)
            else:
                x = embedding.embed(images, frozen, views=views, batch_size=batch_size, progress=report, into=into)
        data.save_arrays(images.with_x(x), out)
    for note in images.notes:
        console.print(f"note: {note}", soft_wrap=True)
    console.print(f"{' × '.join(f'{n:,}' for n in x.shape)} numbers in {out}.", soft_wrap=True)
    say_next(console, "race", out, "--out", free("race"))
