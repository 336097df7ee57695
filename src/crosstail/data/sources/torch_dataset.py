"""A map-style data set of torch or torchvision, of (x, y, domain), (x, y), or dictionaries; in Python only."""

from os import PathLike
from typing import TYPE_CHECKING, Any

from crosstail.data.sources import Source

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset


def _load(source: Any, *, root: Any = None, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._torch_dataset import load_torch

    return load_torch(source, **options)


SOURCE = Source(
    claims=lambda source: not isinstance(source, (str, PathLike)) and hasattr(source, "__getitem__"),
    load=_load,
    order=1,  # a DataFrame has rows, too
)
