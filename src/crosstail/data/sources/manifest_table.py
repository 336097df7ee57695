"""The table of a manifest: its columns under our names, checked row by row."""

import hashlib
import re
from collections.abc import Mapping
from csv import reader
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from crosstail.data.sources.assemble import SPLIT_NAMES
from crosstail.data.sources.natural_order import natural_order

SUFFIXES = (".csv", ".parquet")
# Other names of the columns; `env` is that of the reference's split files.
ALIASES = {"path": (), "x": (), "domain": ("env",), "label": (), "split": ()}


@dataclass(frozen=True, eq=False)
class Names:
    """A column of names: the names in natural order, and which of them each row has."""

    names: tuple[str, ...]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Manifest:
    """A manifest as it was read; `samples` are paths (an Arrow array), or row numbers if `where` is "x"."""

    file: Path
    where: str
    samples: Any
    domain: Names
    label: Names
    split: NDArray[np.str_] | None
    notes: tuple[str, ...]
    rows: NDArray[np.int64]  # of the file, for messages

    def at(self, row: int) -> str:
        """How to find a row."""
        return _at(self.file, int(self.rows[row]))

    def keep(self, mask: NDArray[np.bool_]) -> "Manifest":
        """Some of the rows."""
        return replace(
            self,
            samples=self.samples.filter(pa.array(mask)) if self.where == "path" else self.samples[mask],
            domain=_used(self.domain, mask),
            label=_used(self.label, mask),
            split=None if self.split is None else self.split[mask],
            rows=self.rows[mask],
        )

    def with_samples(self, samples: Any) -> "Manifest":
        """Other paths or row numbers, of which none may stand for two different samples."""
        made = replace(self, samples=samples)
        return made._without_duplicates()

    def rows_matching(self, pattern: str) -> NDArray[np.int64]:
        """Rows whose path matches a regular expression."""
        return np.flatnonzero(pc.match_substring_regex(self.samples, pattern).to_numpy(zero_copy_only=False))

    def _without_duplicates(self) -> "Manifest":
        samples = self.samples if self.where == "path" else pa.array(self.samples)
        parts = (samples.slice(start, 10_000).to_pylist() for start in range(0, len(samples), 10_000))
        hashes = np.fromiter((hash(one) for part in parts for one in part), np.int64, len(samples))
        if len(np.unique(hashes)) == len(samples):
            return self  # what follows takes as much memory again as the paths
        codes = samples.dictionary_encode().indices.to_numpy()
        first = np.unique(codes, return_index=True)[1][codes]  # of the rows with the same sample
        again = np.flatnonzero(first != np.arange(len(codes)))
        if not len(again):
            return self
        columns = {"domain": self.domain.codes, "label": self.label.codes, "split": self.split}
        for name, values in columns.items():
            differs = again[values[again] != values[first[again]]] if values is not None else again[:0]
            if len(differs):
                row = int(differs[0])
                raise ValueError(
                    f"{self.file}: {self.at(row)} has the {self.where} {samples[row].as_py()!r} of "
                    f"{self.at(int(first[row]))} again, with another {name}; leave one of them out"
                )
        row = int(again[0])
        what = "rows that are" if len(again) > 1 else "row that is"
        note = f"left out: {len(again)} {what} there twice (first {self.at(row)}, {samples[row].as_py()!r})"
        return replace(self.keep(first == np.arange(len(codes))), notes=(*self.notes, note))


def read_manifest(file: Path, columns: Mapping[str, str] | None = None) -> Manifest:
    """Read and check a manifest; nothing but the table itself is looked at."""
    table = _table(file, columns)
    rows = np.arange(len(table))
    if not len(rows):
        raise ValueError(f"{file}: has no rows")
    found = dict(zip(table.column_names, table.columns, strict=True))
    del table  # and each column as soon as it is read: half a million rows take memory
    where = "path" if "path" in found else "x"
    domain, domain_notes = _names(file, "domain", found.pop("domain"))
    label, label_notes = _names(file, "label", found.pop("label"))
    split = _split(file, found.pop("split")) if "split" in found else None
    samples = (_paths if where == "path" else _row_numbers)(file, found.pop(where))
    manifest = Manifest(file, where, samples, domain, label, split, (*domain_notes, *label_notes), rows)
    return manifest._without_duplicates()


def read_split(path: str | Path) -> "pd.DataFrame":
    """The columns domain, label, path and split of a split file as text; the images need not be there."""
    table = _table(Path(path), None, required=("domain", "label", "path", "split"))
    columns = {name: _text(Path(path), name, table[name]) for name in ("domain", "label", "path", "split")}
    columns["split"] = pa.array(_split(Path(path), table["split"]))
    return pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})


def checksum_file(path: Path) -> Path:
    """Where the checksum of a split file stands, in the form of `sha256sum`."""
    return path.with_name(path.name + ".sha256")


def _table(file: Path, columns: Mapping[str, str] | None, required: tuple[str, ...] = ("domain", "label")) -> Any:
    """The columns that we know, under our names."""
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{file}: expected a .csv or .parquet file")
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    _verify(file)
    try:
        table = parquet.read_table(file) if file.suffix.lower() == ".parquet" else _read_csv(file)
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: is not text in UTF-8 (byte {error.start}); save it as UTF-8") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file}: cannot be read as a table ({reason[:200]})") from error
    found = table.column_names
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{file}: has the column {twice!r} twice")
    chosen = {}
    for ours, given in (columns or {}).items():
        if ours not in ALIASES:
            raise ValueError(f"columns has {ours!r}, expected some of {', '.join(ALIASES)}")
        if given not in found:
            raise ValueError(f"{file}: has no column {given!r} for {ours!r} but {', '.join(found)}")
        chosen[ours] = given
    for ours, others in ALIASES.items():
        present = [name for name in (ours, *others) if name in found]
        if ours not in chosen and present:
            chosen[ours] = present[0]
    if "path" in chosen:
        chosen.pop("x", None)
    for name in (*required, *(() if "path" in required else ("path",))):
        if name not in chosen and not (name == "path" and "x" in chosen):
            raise ValueError(
                f"{file}: has no column {name!r} but {', '.join(found)}; expected path (or x), domain, label and "
                f"optionally split, or their names as --columns {name}=..."
            )
    return table.select(list(chosen.values())).rename_columns(list(chosen))


def _read_csv(file: Path) -> Any:
    # All columns as text: "NA", "1e3" and "007" are names like any other.
    with file.open(newline="", encoding="utf-8-sig") as stream:
        names = next(reader(stream), [])
    types = dict.fromkeys(names, pa.string())
    return csv.read_csv(file, convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False))


def _verify(file: Path) -> None:
    """Compare a split file with its checksum, where it has one."""
    beside = checksum_file(file)
    if not beside.is_file():
        return
    expected = beside.read_text(encoding="utf-8").split(maxsplit=1)[:1]
    if expected != [hashlib.sha256(file.read_bytes()).hexdigest()]:
        raise ValueError(
            f"{file}: was changed since it was saved: its checksum is not that in {beside.name}. "
            f"Remove {beside.name} if the change is meant"
        )


def _at(file: Path, row: int) -> str:
    return f"line {row + 2}" if file.suffix.lower() == ".csv" else f"row {row}"


def _text(file: Path, name: str, column: Any) -> Any:
    """A column as text, (N,); whole numbers are written as such even if they were stored as floats."""
    column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
    ):
        raise ValueError(f"{file}: the column {name!r} is {kind}, expected text or numbers")
    if pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise ValueError(f"{file}: {_at(file, int(wrong[0]))} has no {name} ({values[wrong[0]]})")
        if (values == np.rint(values)).all():
            column = pa.array(values.astype(np.int64))
    text = column.cast(pa.string())
    if pc.any(pc.match_substring_regex(text, r"^\s|\s$")).as_py():  # not always: half a million paths take memory
        text = pc.utf8_trim_whitespace(text)
    wrong = np.flatnonzero(pc.fill_null(pc.equal(text, ""), True).to_numpy(zero_copy_only=False))
    if len(wrong):
        raise ValueError(f"{file}: {_at(file, int(wrong[0]))} has no {name} ({len(wrong)} such rows)")
    return text


def _names(file: Path, name: str, column: Any) -> tuple[Names, list[str]]:
    text = _text(file, name, column).dictionary_encode()
    found = text.dictionary.to_pylist()
    names = natural_order(found)
    index = {text: i for i, text in enumerate(names)}
    codes = np.array([index[text] for text in found], np.int64)[text.indices.to_numpy()]
    numbers: dict[float, str] = {}
    for one in names:
        value = _number(one)
        if value is not None and numbers.setdefault(value, one) != one:
            row = int(np.flatnonzero(codes == index[one])[0])
            raise ValueError(
                f"{file}: {_at(file, row)} has the {name} {one!r}, elsewhere it is {numbers[value]!r}: "
                f"write a number in one way"
            )
    notes = []
    if numbers and len(numbers) < len(names):
        number, word = next(iter(numbers.values())), next(one for one in names if _number(one) is None)
        notes.append(f"the column {name!r} mixes numbers and words ({number}, {word}); all are taken as names")
    return Names(names, codes), notes


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]*)?", text) else None


def _split(file: Path, column: Any) -> NDArray[np.str_]:
    text = _text(file, "split", column).dictionary_encode()
    found = text.dictionary.to_pylist()
    codes = text.indices.to_numpy()
    for i, name in enumerate(found):
        if name.lower() not in SPLIT_NAMES:
            row = int(np.flatnonzero(codes == i)[0])
            raise ValueError(
                f"{file}: {_at(file, row)} has the split {name!r}, expected train, val or test "
                f"(or {', '.join(_others())})"
            )
    return np.array([SPLIT_NAMES[name.lower()] for name in found], "<U5")[codes]


def _others() -> list[str]:
    return [name for name, ours in SPLIT_NAMES.items() if name != ours]


def _paths(file: Path, column: Any) -> Any:
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        raise ValueError(f"{file}: the column 'path' is {column.type}, expected text")
    return _text(file, "path", column)


def _row_numbers(file: Path, column: Any) -> NDArray[np.int64]:
    text = _text(file, "x", column)
    try:
        return text.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        wrong = next(i for i, value in enumerate(text.to_pylist()) if not value.lstrip("-").isdecimal())
        raise ValueError(
            f"{file}: {_at(file, wrong)} has x = {text[wrong].as_py()!r}, expected the number of a row"
        ) from None


def _used(names: Names, mask: NDArray[np.bool_]) -> Names:
    """Without the names that no row has any more."""
    used, codes = np.unique(names.codes[mask], return_inverse=True)
    return Names(tuple(names.names[i] for i in used), codes.astype(np.int64))
