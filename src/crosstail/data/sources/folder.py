"""A folder of images: ROOT/<domain>/<class>/<image>, or without domains, and optionally with splits."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosstail.data.sources import Columns, Source

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset


def _load(source: str, *, root: Any = None, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._folder import load_folder

    return load_folder(source, **options)


def _domains(source: str, columns: Columns) -> int:
    from crosstail.data.sources._folder import scan

    return len({domain for split, domain, _, _ in scan(Path(source)).pairs if split in ("", "train")})


SOURCE = Source(
    claims=lambda source: isinstance(source, (str, PathLike)) and Path(source).is_dir(),
    load=_load,
    domains=_domains,
    as_inputs=lambda source, columns: [source],
    help="a folder",
    order=1,  # a folder that is something else, too
)
