"""From JPEG files to features of a pretrained network, compared with the usual recipe in eager PyTorch.

Real photos, EfficientNet-Lite0 at 224 pixels, two cores. The reference opens each photo with PIL, crops it with
torchvision, and runs timm's network on 32 photos at a time. Ours starts with an empty feature cache each
time; the export to ONNX is not timed, because it is done once per network.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import timm
import torch
from PIL import Image
from torchvision import transforms

from bench._rows import Row
from bench._timing import interleave
from crosstail import backbones
from crosstail.backbones import _frozen as frozen
from crosstail.data import DomainDataset, ImageFiles, load_folder
from crosstail.ray_actors import map_rows
from crosstail.training.embedding import Embedder, embed

BATCH, THREADS = 32, 2


def run() -> list[Row]:
    shared = Path(os.environ.get("CROSSTAIL_SHARED", Path(__file__).parents[2] / "shared"))
    photos = shared / "data/office-caltech10"
    if not photos.is_dir():
        return []  # real photos are not available
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    dataset = load_folder(photos)
    dataset = dataset.keep(np.linspace(0, len(dataset) - 1, 64 if quick else 128).astype(int))
    backbone = backbones.build("efficientnet_lite0", (3, 224, 224))
    functions: dict[str, Callable[[], object]] = {
        "peer": _peer(dataset),
        "PyTorch": lambda: _ours(dataset, backbone, 10**9),
    }
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, CROSSTAIL_CACHE=folder):
        if _ours(dataset, backbone, 0):
            functions["ONNX Runtime"] = lambda: _ours(dataset, backbone, 0)
        seconds = interleave(functions, repeats=1 if quick else 3, threads=THREADS)
        every = load_folder(photos)
        ray = [_on_ray(every.keep(np.arange(400)) if quick else every, backbone)]
    limits = {"ONNX Runtime": 2.0, "PyTorch": 1.2}
    return ray + [
        Row(
            f"embed a photo in {name}",
            seconds[name] / len(dataset),
            "PIL, torchvision, eager",
            seconds["peer"] / seconds[name],
            limits[name],
            "at least",
        )
        for name in limits
        if name in seconds
    ]


def _on_ray(dataset: DomainDataset, backbone: backbones.Backbone) -> Row:
    """Two actors compared with one process of two threads. Until the first answer of an actor, nothing is timed."""
    cache = Path(os.environ["CROSSTAIL_CACHE"]) / "features"
    start = time.perf_counter()
    embed(dataset, backbone, batch_size=BATCH)
    here = (time.perf_counter() - start) / len(dataset)
    shutil.rmtree(cache)
    start, counted = 0.0, 0
    for rows, _ in map_rows(partial(Embedder, dataset.x, backbone), len(dataset), batch=BATCH, workers=2):
        counted += rows.stop - rows.start if start else 0
        start = start or time.perf_counter()
    there = (time.perf_counter() - start) / counted
    return Row("embed a photo by two actors on Ray", there, "one process, two threads", there / here, 1.25)


def _ours(dataset: DomainDataset, backbone: backbones.Backbone, worth: int) -> bool:
    """Embed all photos without cached features, with ONNX from `worth` images on; return whether an export exists."""
    cache = Path(os.environ["CROSSTAIL_CACHE"])
    shutil.rmtree(cache / "features", ignore_errors=True)
    exported = cache / "onnx"
    hidden = exported.rename(cache / "hidden") if worth and exported.exists() else None
    with mock.patch.object(frozen, "WORTH", worth):
        embed(dataset, backbone, batch_size=BATCH)
    if hidden:
        hidden.rename(exported)
    return exported.exists()


def _peer(dataset: DomainDataset) -> Callable[[], object]:
    files = dataset.x
    assert isinstance(files, ImageFiles)
    paths = [files.root / path for path in files.paths()]
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    transform = transforms.Compose([*steps, transforms.Normalize([0.5] * 3, [0.5] * 3)])
    network = timm.create_model("tf_efficientnet_lite0", num_classes=0).eval()

    def read(path: Path) -> torch.Tensor:
        with Image.open(path) as image:
            return transform(image.convert("RGB"))

    @torch.inference_mode()
    def embed_all() -> object:
        return [
            network(torch.stack([read(path) for path in paths[i : i + BATCH]])) for i in range(0, len(paths), BATCH)
        ]

    return embed_all
