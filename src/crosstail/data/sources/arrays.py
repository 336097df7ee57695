"""An .npz file with x, y and domain, and optionally split, groups, domains and classes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from crosstail.data.sources import Columns, InputKind, Source, suffix_of

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset


def _load(source: str, *, columns: Columns = None, root: Any = None, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._arrays import load_arrays

    return load_arrays(Path(source), **options)


def _kind(source: str, columns: Columns) -> InputKind:
    """From the number of dimensions of x; vectors if there is no x, which loading will explain."""
    from crosstail.data.sources._npz_members import read_header

    try:
        with ZipFile(source) as archive, archive.open("x.npy") as stream:
            return "images" if len(read_header(stream)[0]) == 4 else "vectors"
    except (OSError, KeyError, ValueError, BadZipFile):
        return "vectors"


def _domains(source: str, columns: Columns) -> int:
    from crosstail.data.sources._arrays import read_arrays
    from crosstail.data.sources._as_dataset import trained_domains

    arrays = read_arrays(Path(source), ("domain",), ("split",))
    return trained_domains(arrays["domain"], arrays.get("split"))


SOURCE = Source(
    claims=lambda source: suffix_of(source) == ".npz",
    load=_load,
    kind=_kind,
    domains=_domains,
    as_inputs=lambda source, columns: [source],
    help="an .npz file",
)
