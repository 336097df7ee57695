"""Sources to a DomainDataset, its split, and batches of it."""

from crosstail.data.batches import DomainBatch, DomainBatches, PairBalancedSampler, to_input
from crosstail.data.benchmarks._load import sheet_of, shot_thresholds
from crosstail.data.dataset import SPLITS, DomainDataset, pair_names
from crosstail.data.images import Augment, BrokenImage, ImageFiles, check_images, read_image
from crosstail.data.sources.arrays import load_arrays, save_arrays
from crosstail.data.sources.folder import load_folder
from crosstail.data.sources.hugging_face import load_hf
from crosstail.data.sources.input_kind import kind_of
from crosstail.data.sources.load import load
from crosstail.data.sources.manifest import load_manifest, save_split
from crosstail.data.sources.manifest_table import read_split
from crosstail.data.splits import LabelProfile, apply_labels, paper_split, with_gaps_noted

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
