"""crosstail embed: turn images into vectors, once."""

from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console

from crosstail.cli._checks import known_source
from crosstail.cli._next import say_all, say_next
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import SPLIT, Data, ReadOptions, option, options
from crosstail.cli._verb import described, import_torch
from crosstail.workflows._output import unused_path


@described
def embed(
    dataset: Data,
    /,
    *,
    out: Path,
    backbone: str = "efficientnet_lite0",
    weights: Annotated[str | None, option("weights")] = None,
    resolution: Annotated[int | None, option("resolution")] = None,
    views: int = 0,
    options: Annotated[ReadOptions, options(without=SPLIT)] = ReadOptions(),  # noqa: B008 - immutable
    batch_size: int = 32,
    launcher: Literal["inline", "ray"] = "inline",
    workers: int | None = None,
) -> None:
    """Example: `crosstail embed photos/ --backbone resnet50 --out photos.npz`, then
    `crosstail fit photos.npz --out run`

    Args:
        backbone: A name from `crosstail list backbones`.
        views: Number of augmented views embedded beside each image."""
    samples = options.spec(known_source(dataset))
    import_torch()

    from crosstail.reports.run.command import options as options_of
    from crosstail.training import RunSpec
    from crosstail.workflows.embed import embed

    network: dict[str, Any] = {"backbone": backbone, "weights": weights, "resolution": resolution, "views": views}
    spec = RunSpec(**vars(samples), **network)
    console = Console(stderr=True, markup=False, highlight=False)
    with progress_bar(console) as progress:
        done = embed(spec, out, batch_size=batch_size, launcher=launcher, workers=workers, progress=progress)
    say_all(console, "note", done.notes)
    console.print(f"{' × '.join(f'{n:,}' for n in done.shape)} numbers in {out}.", soft_wrap=True)
    if done.leaks:
        again = options_of(spec.with_group(done.leaks))
        say_next(console, "embed", spec.dataset, *again, "--out", unused_path(str(out)))
    else:
        say_next(console, "race", out, *options_of(spec, only=("names",)), "--out", unused_path("race"))
