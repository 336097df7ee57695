"""From JPEG files to an augmented batch, compared with PIL, torchvision per sample and a loader per domain.

Real photos of four domains in batches of 4 × 24, with the same number of workers: processes for the reference, threads
for ours. The reference is DomainBed's: `Image.open`, `torchvision.transforms` on each sample, an endless `DataLoader`
per domain. Both take turns and are timed after a warm-up. Our time includes scaling the batch, as backbones do.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler
from torchvision import transforms

from bench._rows import Row
from bench._timing import interleave
from crosstail.data import Augment, DomainBatches, DomainDataset, ImageFiles, load_folder
from crosstail.data.examination import PIXELS, Examined, examine
from crosstail.data.images.look_alike import alike
from crosstail.data.sources._folder import scan

BATCH = 24  # per domain
WARM_UP = 8  # batches: more than either side prefetches
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def run() -> list[Row]:
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    steps, repeats = (6, 1) if quick else (12, 3)
    return [*_listing(6_000 if quick else 60_000), *_look_alikes(2_000 if quick else 10_000), *_batches(steps, repeats)]


def _shared() -> Path:
    return Path(os.environ.get("CROSSTAIL_SHARED", Path(__file__).parents[2] / "shared")) / "data"


def _look_alikes(count: int) -> list[Row]:
    """Time the search for look-alikes in similar photos, and the reading that every audit does, with thumbnails."""
    paths = sorted(path.name for path in (_shared() / "ham10000/images").glob("*.jpg"))[:count]
    if not paths:
        return []  # real photos are not available

    def read() -> Examined:
        return examine(ImageFiles(_shared() / "ham10000/images", paths), PIXELS)

    thumbnails = read().thumbnails
    seconds = interleave({"read": read, "compare": lambda: alike(thumbnails)}, repeats=3)
    total = seconds["read"] + seconds["compare"]
    return [Row(f"look-alikes of {len(paths):,} photos", total, "reading them", total / seconds["read"], 2)]


def _batches(steps: int, repeats: int) -> list[Row]:
    photos = _shared() / "office-caltech10"
    if not photos.is_dir():
        return []  # real photos are not available
    dataset = load_folder(photos)
    files = dataset.x
    assert isinstance(files, ImageFiles)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cached = dataset.with_x(files.cached(folder=Path(folder)))
        for _ in _ours(cached, WARM_UP + steps, workers=2):  # fill the cache before timing
            pass
        for workers in (1, dataset.num_domains):
            seconds = _take_turns(
                {
                    "peer": lambda n=workers: _peer(dataset, files, processes=0 if n == 1 else 1),
                    "decoded": lambda n=workers: _ours(dataset, WARM_UP + steps, n),
                    "cached": lambda n=workers: _ours(cached, WARM_UP + steps, n),
                },
                steps,
                repeats,
            )
            for name, limit in (("decoded", 2.0), ("cached", 4.0)):
                what = f"batch of {BATCH * dataset.num_domains} photos, {name}, {workers} worker{'s' * (workers > 1)}"
                rows.append(
                    Row(what, seconds[name], "PIL, torchvision", seconds["peer"] / seconds[name], limit, "at least")
                )
    return rows


def _take_turns(streams: dict[str, Callable[[], Iterator[Tensor]]], steps: int, repeats: int) -> dict[str, float]:
    """Median seconds per batch of each stream; a stream is reopened and warmed up in each round."""
    torch.set_num_threads(1)  # as in the worker processes of a DataLoader
    seconds: dict[str, list[float]] = {name: [] for name in streams}
    for _ in range(repeats):
        for name, make in streams.items():
            stream = make()
            for _ in range(WARM_UP):
                next(stream)
            start = time.perf_counter()
            for _ in range(steps):
                next(stream)
            seconds[name].append((time.perf_counter() - start) / steps)
            del stream
    return {name: median(values) for name, values in seconds.items()}


def _ours(dataset: DomainDataset, steps: int, workers: int) -> Iterator[Tensor]:
    batches = DomainBatches(dataset, batch_size=BATCH, augment=Augment(), workers=workers)
    for batch in batches.stream(0, steps):
        yield batch.x.sub_(0.5).div_(0.5)


class _Photos(Dataset[Tensor]):
    """Photos of one domain with DomainBed's augmentation."""

    def __init__(self, root: Path, paths: list[str]) -> None:
        self.root = root
        self.paths = paths
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224, scale=(0.7, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.ColorJitter(0.3, 0.3, 0.3, 0.3),
                transforms.RandomGrayscale(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Tensor:
        with Image.open(self.root / self.paths[i]) as image:
            return self.transform(image.convert("RGB"))


def _peer(dataset: DomainDataset, files: ImageFiles, processes: int) -> Iterator[Tensor]:
    loaders = []
    for d in range(dataset.num_domains):
        photos = _Photos(files.root, files.take((dataset.domain == d) & (dataset.split == "train")).paths())
        sampler = BatchSampler(RandomSampler(photos, replacement=True, num_samples=10**6), BATCH, drop_last=True)
        loaders.append(iter(DataLoader(photos, batch_sampler=sampler, num_workers=processes)))
    while True:
        yield torch.cat([next(loader) for loader in loaders])


def _listing(count: int) -> list[Row]:
    """Time the listing of a folder with a tenth of the files of DomainNet."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for d in range(6):
            for c in range(20):
                pair = root / f"domain{d}/class{c}"
                pair.mkdir(parents=True)
                for i in range(count // 120):
                    os.close(os.open(pair / f"{i:06d}.jpg", os.O_CREAT | os.O_WRONLY))
        seconds = interleave({"scan": lambda: scan(root)}, repeats=3)["scan"]
    return [Row(f"list {count:,} images", seconds, "", None, count / 60_000)]
