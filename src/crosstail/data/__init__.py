"""From a source to a DomainDataset, and from there to batches."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from crosstail import discovery
from crosstail.data.arrays import load_arrays
from crosstail.data.batches import DomainBatch, DomainBatches, to_input
from crosstail.data.dataset import SPLITS, DomainDataset, pair_names
from crosstail.data.label_profiles import LabelProfile, apply_labels
from crosstail.data.splits import paper_split

__all__ = [
    "SPLITS",
    "DomainBatch",
    "DomainBatches",
    "DomainDataset",
    "LabelProfile",
    "apply_labels",
    "load",
    "load_arrays",
    "pair_names",
    "paper_split",
    "shot_thresholds",
    "to_input",
]

BENCHMARKS = "crosstail.data.benchmarks"


def load(source: str | PathLike[str], *, labels: Sequence[str] | None = None, seed: int = 0) -> DomainDataset:
    """Load a benchmark by its name or an .npz file by its path, with these label profiles.

    Without `labels` a benchmark has those of its data sheet, and a file is taken as it is; `["uniform"]`
    keeps all samples.

    >>> load("digits", labels=["uniform"]).counts("train")[0].tolist()
    [57, 57, 57, 57, 57, 57, 57, 57, 57, 57]
    >>> load("digits").counts("train")[0].tolist()
    [57, 36, 23, 14, 9, 6, 3, 2, 1, 1]
    """
    path = Path(source)
    if path.suffix.lower() == ".npz":
        return apply_labels(load_arrays(path, seed=seed), labels, seed)
    try:
        benchmark = discovery.find(BENCHMARKS, str(source), "data set")
    except ValueError as error:
        raise ValueError(f"{error} A path to an .npz file is also taken.") from None
    dataset: DomainDataset = benchmark.load(seed=seed)
    return apply_labels(dataset, benchmark.SHEET.labels if labels is None else labels, seed)


def shot_thresholds(source: str | PathLike[str]) -> tuple[int, int]:
    """Above how many samples a pair is many-shot, and up to how many few-shot: its data sheet's, or the paper's.

    >>> shot_thresholds("digits"), shot_thresholds("mine.npz")
    ((30, 8), (100, 20))
    """
    if str(source) in discovery.names(BENCHMARKS):
        sheet = discovery.find(BENCHMARKS, str(source), "data set").SHEET
        return sheet.many, sheet.few
    return 100, 20
