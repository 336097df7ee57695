"""Where data come from: a folder, a manifest, arrays, Hugging Face or a benchmark, each to a DomainDataset."""

from crosstail.data.sources.arrays import load_arrays, save_arrays
from crosstail.data.sources.folder import load_folder
from crosstail.data.sources.hugging_face import load_hf
from crosstail.data.sources.input_kind import InputKind, kind_of
from crosstail.data.sources.load import load
from crosstail.data.sources.manifest import load_manifest, save_split
from crosstail.data.sources.manifest_table import read_split

__all__ = [
    "InputKind",
    "kind_of",
    "load",
    "load_arrays",
    "load_folder",
    "load_hf",
    "load_manifest",
    "read_split",
    "save_arrays",
    "save_split",
]
