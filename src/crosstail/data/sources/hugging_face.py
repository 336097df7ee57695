"""A data set of the library `datasets`: hf:NAME on the Hub, a folder written by `save_to_disk`, or an object."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosstail.data.sources import Source

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset

PREFIX = "hf:"


def is_saved_dataset(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def is_hf(source: object) -> bool:
    """Whether an object is a data set of the library `datasets`, which is not imported for it."""
    return any(kind.__module__.partition(".")[0] == "datasets" for kind in type(source).__mro__)


def _claims(source: Any) -> bool:
    if not isinstance(source, (str, PathLike)):
        return is_hf(source)
    return str(source).startswith(PREFIX) or is_saved_dataset(Path(source))


def _load(source: Any, *, root: Any = None, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._hugging_face import load_hf

    return load_hf(source, **options)


SOURCE = Source(claims=_claims, load=_load, help="hf:NAME", columned=True, on_disk=False)
