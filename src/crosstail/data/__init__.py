"""Sources to a DomainDataset, its split, and batches of it."""

from typing import TYPE_CHECKING

from crosstail import discovery

if TYPE_CHECKING:  # importing torch takes seconds, and a wrong path is found without it
    from crosstail.data.batches.batch import DomainBatch, to_input
    from crosstail.data.batches.domain_batches import DomainBatches
    from crosstail.data.batches.sampler import PairBalancedSampler
    from crosstail.data.benchmarks._load import load_images, sheet_of, shot_thresholds
    from crosstail.data.benchmarks._sheet import DataSheet, read_sheet
    from crosstail.data.dataset import SPLITS, DomainDataset, pair_names
    from crosstail.data.examination import examine, find_broken
    from crosstail.data.images.augment import Augment
    from crosstail.data.images.decode import BrokenImage, read_image
    from crosstail.data.images.files import ImageFiles
    from crosstail.data.inputs import InputKind, kind_of
    from crosstail.data.sources import as_inputs, count_domains, kind_in
    from crosstail.data.sources._arrays import load_arrays, save_arrays
    from crosstail.data.sources._as_dataset import as_dataset
    from crosstail.data.sources._folder import load_folder
    from crosstail.data.sources._hugging_face import load_hf
    from crosstail.data.sources._load import load, load_source
    from crosstail.data.sources._locate import data_name
    from crosstail.data.sources._manifest import load_frame, load_manifest
    from crosstail.data.sources._manifest_table import read_split
    from crosstail.data.sources._torch_dataset import load_torch
    from crosstail.data.sources.benchmark import spelled
    from crosstail.data.spec import DataSpec
    from crosstail.data.splits.gaps import with_gaps_noted
    from crosstail.data.splits.label_profiles import LabelProfile, apply_labels
    from crosstail.data.splits.paper import paper_split
else:
    __getattr__, __dir__ = discovery.lazily(__file__)

__all__ = [
    "SPLITS", "Augment", "BrokenImage", "DataSheet", "DataSpec", "DomainBatch", "DomainBatches", "DomainDataset",
    "ImageFiles", "InputKind", "LabelProfile", "PairBalancedSampler", "apply_labels", "as_dataset", "as_inputs",
    "count_domains", "data_name", "examine", "find_broken", "kind_in", "kind_of", "load", "load_arrays",
    "load_folder", "load_frame", "load_hf", "load_images", "load_manifest", "load_source", "load_torch",
    "pair_names", "paper_split", "read_image", "read_sheet", "read_split", "save_arrays", "sheet_of",
    "shot_thresholds", "spelled", "to_input", "with_gaps_noted",
]  # fmt: skip
