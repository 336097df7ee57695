"""From a source to a DomainDataset, and from there to batches."""

from collections.abc import Mapping, Sequence
from os import PathLike, sep
from pathlib import Path

from crosstail import discovery
from crosstail.data.batches.domain_batches import DomainBatch, DomainBatches, to_input
from crosstail.data.batches.sampler import PairBalancedSampler
from crosstail.data.benchmarks._load import load_benchmark, sheet_of
from crosstail.data.dataset import SPLITS, DomainDataset, pair_names
from crosstail.data.images.augment import Augment
from crosstail.data.images.files import BrokenImage, ImageFiles, check_images, read_image
from crosstail.data.sources.arrays import load_arrays, save_arrays
from crosstail.data.sources.assemble import without_broken
from crosstail.data.sources.folder import load_folder
from crosstail.data.sources.hugging_face import PREFIX, is_saved_dataset, load_hf
from crosstail.data.sources.kind import kind_of
from crosstail.data.sources.manifest import load_manifest, save_split
from crosstail.data.sources.manifest_table import SUFFIXES as MANIFESTS
from crosstail.data.sources.manifest_table import read_split
from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import LabelProfile, apply_labels
from crosstail.data.splits.paper import paper_split

__all__ = [
    "SPLITS",
    "Augment",
    "BrokenImage",
    "DomainBatch",
    "DomainBatches",
    "DomainDataset",
    "ImageFiles",
    "LabelProfile",
    "PairBalancedSampler",
    "apply_labels",
    "check_images",
    "kind_of",
    "load",
    "load_arrays",
    "load_folder",
    "load_hf",
    "load_manifest",
    "pair_names",
    "paper_split",
    "read_image",
    "read_split",
    "save_arrays",
    "save_split",
    "sheet_of",
    "shot_thresholds",
    "to_input",
    "with_gaps_noted",
]

BENCHMARKS = "crosstail.data.benchmarks"
TAKEN = "Also taken: a folder, a .csv or .parquet manifest, an .npz file, hf:NAME."


def load(
    source: str | PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    seed: int = 0,
    skip_broken: bool = False,
    columns: Mapping[str, str] | None = None,
    root: str | PathLike[str] | None = None,
) -> DomainDataset:
    """Load a benchmark (`NAME` or `NAME:FOLDER`), a folder, a manifest, an .npz file or "hf:NAME", with label profiles.

    Without `labels` a benchmark has those of its data sheet, and other sources are taken as they are; `["uniform"]`
    keeps all samples. `skip_broken` goes on without images that cannot be read and names them in the notes of the data
    set; `columns` and `root` are those of `load_manifest`. A benchmark's name comes before a folder of that name: write
    `./digits` for the folder.

    >>> load("digits", labels=["uniform"]).counts("train")[0].tolist()
    [57, 57, 57, 57, 57, 57, 57, 57, 57, 57]
    >>> load("digits").counts("train")[0].tolist()
    [57, 36, 23, 14, 9, 6, 3, 2, 1, 1]
    """
    name, path = str(source), Path(source)
    sheet = sheet_of(name) if isinstance(source, str) else None
    if sheet is not None:
        dataset = load_benchmark(name, seed=seed)
        labels = sheet.labels if labels is None else labels
        if skip_broken and isinstance(dataset.x, ImageFiles):
            dataset = without_broken(dataset, dataset.x)
    elif name.startswith(PREFIX) or is_saved_dataset(path):
        dataset = load_hf(source, columns=columns, seed=seed, skip_broken=skip_broken)
    elif path.suffix.lower() == ".npz":
        dataset = load_arrays(path, seed=seed)
    elif path.suffix.lower() in MANIFESTS:
        dataset = load_manifest(path, columns=columns, root=root, seed=seed, skip_broken=skip_broken)
    elif path.is_dir():
        dataset = load_folder(path, seed=seed, skip_broken=skip_broken)
    elif path.exists():
        raise ValueError(f"{path}: is a file of a kind that is not known here. {TAKEN}")
    elif sep in name:
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    else:
        raise ValueError(
            f"unknown data set {name!r}: {discovery.suggestion(name, discovery.names(BENCHMARKS))} {TAKEN}"
        )
    return with_gaps_noted(apply_labels(dataset, labels, seed))


def shot_thresholds(source: str | PathLike[str]) -> tuple[int, int]:
    """Above how many samples a pair is many-shot, and up to how many few-shot: its data sheet's, or the paper's.

    >>> shot_thresholds("digits"), shot_thresholds("mine.npz")
    ((30, 8), (100, 20))
    """
    sheet = sheet_of(str(source))
    return (sheet.many, sheet.few) if sheet else (100, 20)
