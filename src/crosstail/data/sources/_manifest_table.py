"""The table of a manifest: its columns under our names, with every row checked."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from csv import Error, reader
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from crosstail.data.dataset import SPLIT_NAMES
from crosstail.data.sources import Columns
from crosstail.data.sources._groups import group_like_columns
from crosstail.data.sources._natural_order import natural_order
from crosstail.data.sources.manifest import SUFFIXES

# Our columns, and other names for them; the reference's split files have `env`.
COLUMNS = {"path": (), "x": (), "domain": ("env",), "label": (), "split": (), "group": ()}
_SEPARATORS = {",": "", ";": "semicolons", "\t": "tabs"}


@dataclass(frozen=True, eq=False)
class Manifest:
    """A table with a row per sample, under our names of columns and with the row in the file as its index.

    `domain` and `label` are categories in natural order; without a `group`, columns that look like one are there too.
    """

    file: Path
    table: pd.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The column that locates a sample: path or x."""
        return str(self.table.columns[0])

    def codes(self, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """A column of names as indices, and the names that are used."""
        column = self.table[name].cat.remove_unused_categories().cat
        return column.codes.to_numpy().astype(np.int64), tuple(map(str, column.categories))

    @property
    def split(self) -> NDArray[np.str_] | None:
        return self.table["split"].to_numpy().astype("<U5") if "split" in self.table else None

    @property
    def group(self) -> "pd.Series[Any] | None":
        return self.table.get("group")

    @property
    def group_like(self) -> pd.DataFrame:
        return self.table.drop(columns=list(COLUMNS), errors="ignore")

    def at(self, row: int) -> str:
        """Where a row of the table is in the file, for messages."""
        return _at(self.file, int(self.table.index[row]))

    def without_duplicates(self) -> "Manifest":
        """Each sample once; one that is listed twice with different labels is refused."""
        again = self.table.duplicated(self.key)
        if not again.any():
            return self
        same = self.table[self.table.duplicated(self.key, keep=False)]
        first = same.index.to_series().groupby(same[self.key]).transform("first")
        for name in same.columns[1:].intersection(list(COLUMNS)):
            text = same[name].astype(str).fillna("")
            differs = np.flatnonzero(text.to_numpy() != text.loc[first].to_numpy())
            if len(differs):
                row = same.index[differs[0]]
                sample = f"the {self.key} {str(same.loc[row, self.key])!r} of {_at(self.file, first[row])}"
                found = f"{_at(self.file, row)} has {sample} again, with another {name}"
                raise ValueError(f"{self.file}: {found}; remove one of them")
        row, count = int(again.to_numpy().argmax()), int(again.sum())
        where = f"first {self.at(row)}, {str(self.table[self.key].iloc[row])!r}"
        note = f"left out: {count} duplicate row{'s' if count > 1 else ''} ({where})"
        return replace(self, table=self.table[~again], notes=(*self.notes, note))


def read_manifest(file: Path, columns: Columns = None) -> Manifest:
    """Read and check a manifest; the samples themselves are not looked at."""
    table = _read(file, columns, group_like=True)
    separated = _SEPARATORS[_separator(file)] if file.suffix.lower() == ".csv" else ""
    return checked(file, table, [f"columns are separated by {separated}, not commas"] if separated else [])


def checked(file: Path, table: Any, notes: list[str]) -> Manifest:
    """A manifest from an Arrow table under our names, with every row checked."""
    if not len(table):
        raise ValueError(f"{file}: has no rows")
    key = "path" if "path" in table.column_names else "x"
    found: dict[str, Any] = {key: (_text if key == "path" else _row_numbers)(file, key, table[key])}
    found |= {name: _names(file, name, table[name], notes) for name in ("domain", "label")}
    if "split" in table.column_names:
        found["split"] = _splits(file, "split", table["split"])
    if "group" in table.column_names:
        found["group"] = as_text(file, "group", table["group"])
        _numbers(file, "group", found["group"], found["group"].dropna().unique())
    for name in table.column_names:
        if name not in COLUMNS and _is_text(table[name].type, numbers=True):
            found[name] = as_text(file, name, table[name])
    return Manifest(file, pd.DataFrame(found), tuple(notes)).without_duplicates()


def read_split(path: str | Path, columns: tuple[str, ...] = ("domain", "label", "path", "split")) -> pd.DataFrame:
    """These columns of a split file as text; the images need not exist."""
    file = Path(path)
    table = _read(file, None, required=columns)
    return pd.DataFrame({name: (_splits if name == "split" else _text)(file, name, table[name]) for name in columns})


def columns_of(file: Path, columns: Columns = None, required: tuple[str, ...] = ("domain", "label")) -> dict[str, str]:
    """Our name and the file's for each column that is used, from its header alone; with a `path`, no `x`."""
    chosen = choose(file, _table_of(file, lambda: _header(file)), columns, required)
    if not {"path", "x"} & chosen.keys():
        raise _missing(file, "path", _header(file))
    return chosen


def choose(
    file: Path, found: list[str], columns: Columns, required: tuple[str, ...] = ("domain", "label")
) -> dict[str, str]:
    """The same from the names that were found; a table in memory needs neither `path` nor `x`."""
    if len(set(found)) < len(found):
        raise ValueError(f"{file}: has the column {Counter(found).most_common(1)[0][0]!r} twice")
    chosen = {ours: name for ours, others in COLUMNS.items() for name in (*others, ours) if name in found}
    for ours, given in (columns or {}).items():
        if ours not in COLUMNS:
            raise ValueError(f"--column has {ours!r}, expected some of {', '.join(COLUMNS)}")
        if given not in found:
            raise ValueError(f"{file}: has no column {given!r} for {ours!r} but {', '.join(found)}")
        chosen[ours] = given
    if twice := [ours for ours, name in chosen.items() if list(chosen.values()).count(name) > 1]:
        raise ValueError(f"{file}: --column makes {chosen[twice[0]]!r} both {' and '.join(twice[:2])}")
    if "path" in chosen:
        chosen.pop("x", None)
    if missing := [name for name in required if name not in chosen]:
        raise _missing(file, missing[0], found)
    return chosen


def _missing(file: Path, name: str, found: list[str]) -> ValueError:
    expected = "path (or x), domain, label and optionally split and group, or their names as"
    option = f"--column {name}=..." if file.suffix else f"columns={{{name!r}: ...}}"
    return ValueError(f"{file}: has no column {name!r} but {', '.join(found)}; expected {expected} {option}")


def _read(
    file: Path, columns: Columns, required: tuple[str, ...] = ("domain", "label"), *, group_like: bool = False
) -> Any:
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{file}: expected a .csv or .parquet file")
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    chosen = columns_of(file, columns, required)
    if group_like:
        chosen |= group_like_columns(chosen, _header(file))
    names = list(chosen.values())
    if file.suffix.lower() == ".parquet":
        table = _table_of(file, lambda: parquet.read_table(file, columns=names))
    else:
        # All columns as text: "NA", "1e3" and "007" are names like any other.
        text = dict.fromkeys(names, pa.string())
        options = csv.ConvertOptions(include_columns=names, column_types=text, strings_can_be_null=False)
        parsed = csv.ParseOptions(delimiter=_separator(file))
        table = _table_of(file, lambda: csv.read_csv(file, parse_options=parsed, convert_options=options))
    return table.select(names).rename_columns(list(chosen))


def _header(file: Path) -> list[str]:
    if file.suffix.lower() == ".parquet":
        return list(parquet.read_schema(file).names)
    with file.open(newline="", encoding="utf-8-sig") as stream:
        names = next(reader(stream, delimiter=_separator(file)), [])
    if not names:
        raise ValueError("Empty CSV file")
    return names


def _separator(file: Path) -> str:
    with file.open("rb") as stream:
        line = stream.readline()
    return max(_SEPARATORS, key=lambda separator: line.count(separator.encode()))


def _table_of(file: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: is not text in UTF-8 (byte {error.start}); save it as UTF-8") from error
    except (pa.ArrowException, OSError, ValueError, Error) as error:
        raise ValueError(f"{file}: cannot be read as a table ({' '.join(str(error).split())[:200]})") from error


def _at(file: Path, row: int) -> str:
    return f"line {row + 2}" if file.suffix.lower() == ".csv" else f"row {row}"


def as_text(source: object, name: str, column: Any) -> "pd.Series[Any]":
    """An Arrow column as stripped text, null where it is empty; whole numbers stored as floats become integers."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if not _is_text(column.type, numbers=name != "path"):
        expected = "text" if name == "path" else "text or numbers"
        raise ValueError(f"{source}: the column {name!r} is {column.type}, expected {expected}")
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pd.Series(pd.arrays.ArrowExtensionArray(pc.if_else(pc.equal(text, ""), None, text)))


def _is_text(kind: Any, *, numbers: bool) -> bool:
    types, kind = pa.types, kind.value_type if pa.types.is_dictionary(kind) else kind
    of_numbers = (types.is_floating, types.is_integer, types.is_boolean) if numbers else ()
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, *of_numbers))


def _text(file: Path, name: str, column: Any) -> "pd.Series[Any]":
    text = as_text(file, name, column)
    empty = np.flatnonzero(text.isna())
    if len(empty):
        raise ValueError(f"{file}: {_at(file, int(empty[0]))} has no {name} ({len(empty)} such rows)")
    return text


def _names(file: Path, name: str, column: Any, notes: list[str]) -> pd.Categorical:
    text = _text(file, name, column)
    names = natural_order(map(str, text.unique()))
    numbers = _numbers(file, name, text, names)
    if numbers and len(numbers) < len(names):
        number, word = numbers[0], next(one for one in names if _number(one) is None)
        notes.append(f"the column {name!r} mixes numbers and words ({number}, {word}); all are used as names")
    return pd.Categorical(text, categories=list(names))


def _numbers(file: Path, name: str, text: "pd.Series[Any]", names: Iterable[str]) -> list[str]:
    numbers: dict[float, str] = {}
    for one in names:
        value = _number(one)
        if value is not None and numbers.setdefault(value, one) != one:
            found = f"{_at(file, int((text == one).fillna(False).to_numpy().argmax()))} has the {name} {one!r}"
            raise ValueError(f"{file}: {found}, elsewhere it is {numbers[value]!r}: write a number in one way")
    return list(numbers.values())


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[+-]?[0-9]{1,15}(\.[0-9]*)?", text) else None


def _splits(file: Path, name: str, column: Any) -> "pd.Series[Any]":
    text = _text(file, name, column)
    split = text.str.lower().map(SPLIT_NAMES)
    if split.isna().any():
        row = int(split.isna().to_numpy().argmax())
        found = f"{_at(file, row)} has the {name} {text[row]!r}"
        raise ValueError(f"{file}: {found}, expected {', '.join(SPLIT_NAMES)}")
    return split


def _row_numbers(file: Path, name: str, column: Any) -> "pd.Series[Any]":
    text = _text(file, name, column)
    whole = text.str.fullmatch(r"-?[0-9]{1,18}").to_numpy(np.bool_)
    if not whole.all():
        row = int(whole.argmin())
        raise ValueError(f"{file}: {_at(file, row)} has {name} = {text[row]!r}, expected a row number")
    return text.astype(np.int64)
