"""The source "hf": a data set of the Hugging Face library `datasets` (the extra `[hf]`)."""

import hashlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crosstail.data.dataset import SPLIT_NAMES, DomainDataset
from crosstail.data.images.files import AnyPath, ImageFiles, file_state
from crosstail.data.sources import Columns
from crosstail.data.sources._as_dataset import SourceOptions, as_dataset
from crosstail.data.sources._folder_layout import ONE_DOMAIN
from crosstail.data.sources._manifest_table import as_text
from crosstail.data.sources._natural_order import numbered_names
from crosstail.data.sources.hugging_face import PREFIX, is_hf, is_saved_dataset

COLUMNS = ("image", "label", "domain", "group")  # the last is optional


class HfImages(ImageFiles):
    """Images stored as bytes in the Arrow tables of a data set."""

    in_files = False

    def __init__(self, name: str, tables: list[Any]) -> None:
        self._images = pa.chunked_array([chunk for column in tables for chunk in column.chunks])
        # An image saved without its bytes has a path instead, and size 0.
        sizes = pc.fill_null(pc.binary_length(pc.struct_field(self._images, "bytes")), 0).to_numpy().astype(np.int64)
        super().__init__(name, [f"image {i}" for i in range(len(sizes))], sizes=sizes)

    def _state(self, row: int) -> tuple[int, int]:
        # A row has no modification time. A hash of its content costs a fraction of decoding it.
        source, _ = self._source(row)
        if isinstance(source, Path):
            return file_state(str(source))
        digest = hashlib.blake2b(source, digest_size=8).digest()
        return len(source), int.from_bytes(digest, "little", signed=True)

    def _source(self, row: int) -> tuple[Path | bytes, str]:
        image = self._images[row].as_py()
        source = image["bytes"] if image["bytes"] is not None else Path(image["path"])
        return source, f"{self.root}: {self._paths[row].as_py()}"


def load_hf(source: Any, *, columns: Columns = None, **options: Unpack[SourceOptions]) -> DomainDataset:
    """Load "hf:NAME" from the Hub, a folder written by `save_to_disk`, a `Dataset` or a `DatasetDict`.

    The columns are image, label and domain; without the last, all images are in one domain. `columns` maps these names,
    and the optional `group`, to the data set's own, as in {"domain": "style"}. Splits train, validation and test are
    kept; a data set in one part gets the split of user data.
    """
    found, name = (source, type(source).__name__) if is_hf(source) else _opened(source)
    source = name if is_hf(source) else source  # what errors name
    parts: dict[str, Any] = dict(found) if hasattr(found, "keys") else {"train": found}
    for part in parts.values():
        if not hasattr(part, "data"):
            raise ValueError(f"{source}: is streamed; load it without streaming=True")
    wrong = [ours for ours in columns or {} if ours not in COLUMNS]
    if wrong:
        raise ValueError(f"--column has {wrong[0]!r}, expected some of {', '.join(COLUMNS)}")
    chosen = {ours: ours for ours in COLUMNS[:3]} | dict(columns or {})
    if all("group" in part.column_names for part in parts.values()):
        chosen.setdefault("group", "group")
    if "domain" not in (columns or {}) and not any("domain" in part.column_names for part in parts.values()):
        del chosen["domain"]
    for part in parts.values():
        for ours, theirs in chosen.items():
            if theirs not in part.column_names:
                raise ValueError(
                    f"{source}: has no column {theirs!r} but {', '.join(part.column_names)}; expected image, label, "
                    f"domain and optionally group, or their names as --column {ours}=..."
                )
    unknown = [part for part in parts if part.lower() not in SPLIT_NAMES]
    if unknown and len(parts) > 1:
        raise ValueError(f"{source}: has the part {unknown[0]!r}, expected train, validation and test")
    rows = {part: _as_plain_table(part_data, chosen["image"]) for part, part_data in parts.items()}
    names = [SPLIT_NAMES.get(part.lower(), "train") for part in parts]
    split = np.repeat(names, [len(part) for part in rows.values()]).astype("<U5") if len(parts) > 1 else None
    y, classes = _codes(source, chosen["label"], parts.values())
    domain = np.zeros_like(y)
    domains: tuple[str, ...] = (ONE_DOMAIN,)
    notes = [
        f"no column 'domain': all {len(y):,} images are in one domain, {ONE_DOMAIN!r}; --column domain=... names one"
    ]
    if "domain" in chosen:
        (domain, domains), notes = _codes(source, chosen["domain"], parts.values()), []
    images = HfImages(name, [part.column(chosen["image"]) for part in rows.values()])
    group = None
    if column := chosen.get("group"):
        texts = [as_text(source, column, part.column(column)) for part in rows.values()]
        group = pd.concat(texts, ignore_index=True)
    title = Path(name).name
    return as_dataset(title, images, y, domain, classes, domains, split=split, group=group, notes=notes, **options)


def _opened(source: AnyPath) -> tuple[Any, str]:
    try:
        datasets: Any = import_module("datasets")
    except ImportError:
        raise ValueError(f"{source}: needs the library `datasets`: pip install 'crosstail[hf]'") from None
    name = str(source).removeprefix(PREFIX)
    try:
        return (datasets.load_from_disk if is_saved_dataset(Path(name)) else datasets.load_dataset)(name), name
    except Exception as error:  # the library raises all kinds: network, Hub, unsupported scripts
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{source}: cannot be loaded by `datasets` ({type(error).__name__}: {reason})") from error


def _as_plain_table(part: Any, image: str) -> Any:
    if type(part.features[image]).__name__ != "Image":
        raise ValueError(f"the column {image!r} is {part.features[image]}, expected images")
    return part.flatten_indices().data.table if part._indices is not None else part.data.table


def _codes(source: object, column: str, parts: Iterable[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    values = [value for part in parts for value in part[column]]
    missing = [i for i, value in enumerate(values) if value is None or value == ""]
    if missing:
        raise ValueError(f"{source}: row {missing[0]} has no {column}")
    feature = next(iter(parts)).features[column]
    if hasattr(feature, "names"):  # a ClassLabel: indices into names
        return np.array(values, np.int64), tuple(feature.names)
    return numbered_names(list(map(str, values)))
