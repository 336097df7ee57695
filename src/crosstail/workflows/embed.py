"""Turn images into vectors, once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from crosstail import data
from crosstail.data.splits.gaps import leaking_column
from crosstail.progress import Progress, silent
from crosstail.storage import scratch_array
from crosstail.training import embedding
from crosstail.training.memory import explain_out_of_memory
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec

BACKBONE = "efficientnet_lite0"


@dataclass(frozen=True)
class Embedded:
    """A file of vectors."""

    out: Path
    shape: tuple[int, ...]
    """(N, F), with views (N, 1 + views, F)."""
    notes: Sequence[str]
    """What to know about the data."""
    leaks: str | None = None
    """Column that looks like a group, whose values are in training and test: the vectors have no such column."""


def embed(
    spec: RunSpec,
    out: Path,
    *,
    batch_size: int = 32,
    launcher: Literal["inline", "ray"] = "inline",
    workers: int | None = None,
    progress: Progress = silent,
) -> Embedded:
    """Embed every image once with a pretrained network, to train on the vectors.

    Args:
        spec: The data, the backbone (efficientnet_lite0 unless it names another), its weights, resolution and views.
        out: The .npz file to write, with x, y, domain, split, groups if there are any, domains and classes.
        batch_size: Images per forward pass.
        launcher: inline: in this process; ray: on the cluster at $RAY_ADDRESS, or here.
        workers: Actors on Ray; default: one per GPU, or one per core.
        progress: Called as the work advances.
    """
    if out.suffix != ".npz":
        raise ValueError(f"--out {out}: expected a name that ends in .npz")
    spec = resolve(replace(spec, backbone=spec.backbone or BACKBONE, tune="none"))
    inputs = load_inputs(spec, data.load_source(spec, progress))
    images, frozen = inputs.samples, inputs.frozen
    assert frozen is not None
    lower = f"--batch-size (now {batch_size}), --resolution (now {images.x.shape[1]})"
    report = partial(progress, "embedding")
    with scratch_array(out, (len(images), 1 + spec.views, frozen.num_features)) as into:
        with explain_out_of_memory(lower):
            if launcher == "ray":
                x = embedding.embed_on_ray(images, frozen, spec.views, batch_size, workers, report, into)
            else:
                x = embedding.embed(images, frozen, views=spec.views, batch_size=batch_size, progress=report, into=into)
        data.save_arrays(images.with_x(x), out)
    return Embedded(out, x.shape, images.notes, leaking_column(images))
