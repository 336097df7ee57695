"""An .npz file with x, y and domain, and optionally split, groups, domains and classes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from crosstail.data.sources import Columns, Source, suffix_of

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.inputs import InputKind


def _load(source: str, *, root: Any = None, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._arrays import load_arrays

    return load_arrays(Path(source), **options)


def _kind(source: str, columns: Columns) -> "InputKind":
    import numpy as np

    from crosstail.data.inputs import kind_of, vectors
    from crosstail.data.sources._npz_members import read_header

    try:
        with ZipFile(source) as archive, archive.open("x.npy") as stream:
            shape, _, dtype = read_header(stream)
        return kind_of(np.broadcast_to(np.zeros((), dtype), shape))  # without content
    except (OSError, KeyError, ValueError, BadZipFile):
        return vectors.KIND


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
