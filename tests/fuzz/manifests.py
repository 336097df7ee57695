"""Manifests: CSV and Parquet files that list images, or rows of an array, with domain and label."""

import io
from collections.abc import Callable
from pathlib import Path
from random import Random

import pandas as pd
from tests.fuzz._case import Case
from tests.fuzz._good import SHORT
from tests.fuzz.arrays import damaged

COMMANDS = (
    *3 * ("audit {file} --json", "predict run-p {file} --json", "evaluate run-p {file} --json"),
    *("audit {file}", "audit {file} --column domain=label", "evaluate run-p {file} --skip-broken"),
    f"fit {{file}} --algorithm erm --backbone small_cnn --resolution 16 {SHORT} --out run-n",
    "embed {file} --resolution 32 --out e.npz",
)


def case(random: Random, good: Path) -> Case:
    """A manifest with one flaw."""
    paths = sorted(path.relative_to(good) for path in (good / "photos").rglob("*.jpg"))
    table = pd.DataFrame(
        [(str(path), path.parts[1], path.parts[2]) for path in paths], columns=["path", "domain", "label"], dtype=object
    )
    if random.random() < 0.3:
        table["split"] = [("train", "val", "test", "train", "train")[i % 5] for i in range(len(table))]
    if random.random() < 0.2:
        table["group"] = [f"patient {i // 2}" for i in range(len(table))]
    table = table.astype(object)  # columns of strings take no surrogate
    if random.random() < 0.25:
        file = "new.parquet"
        how, content = _parquet(table, random)
    else:
        file = "new.csv"
        how, content = _csv(table, random)
    command = random.choice(COMMANDS).format(file=file)
    names = (file, "photos/", "/etc/passwd")  # the manifest, or the image in it that is at fault
    return Case(f"{file}: {how}", command, names, lambda folder: (folder / file).write_bytes(content))


def _text(table: pd.DataFrame) -> str:
    return table.to_csv(index=False)


def _csv(table: pd.DataFrame, random: Random) -> tuple[str, bytes]:
    if random.random() < 0.6:
        how, changed = _changed(table, random)
        return how, _text(changed).encode("utf-8", "surrogateescape")
    text = _text(table)
    lines = text.splitlines()
    middle = random.randrange(1, len(lines))
    ways: dict[str, Callable[[], bytes]] = {
        "a cell of 2 MB": lambda: "\n".join([*lines, f"{'x' * 2_000_000},clinic,cat"]).encode(),
        "a header of 2 MB": lambda: f"{'x' * 2_000_000},{text}".encode(),
        "NUL": lambda: text.replace("cat", "c\x00t", 1).encode(),
        "NUL in the header": lambda: text.replace("label", "la\x00bel", 1).encode(),
        "only a header": lambda: lines[0].encode(),
        "only a header and a line end": lambda: lines[0].encode() + b"\n",
        "only line ends": lambda: b"\n\n\n\n",
        "a line end first": lambda: b"\n" + text.encode(),
        "a BOM": lambda: b"\xef\xbb\xbf" + text.encode(),
        "two BOMs": lambda: b"\xef\xbb\xbf\xef\xbb\xbf" + text.encode(),
        "UTF-16": lambda: text.encode("utf-16"),
        "Latin-1": lambda: text.replace("cat", "ch\u00eat").encode("latin-1"),
        "a row too short": lambda: "\n".join([*lines[:middle], "photos", *lines[middle:]]).encode(),
        "a row too long": lambda: "\n".join([*lines[:middle], lines[middle] + ",,,x", *lines[middle + 1 :]]).encode(),
        "an open quote": lambda: "\n".join([*lines[:middle], '"' + lines[middle], *lines[middle + 1 :]]).encode(),
        "an open quote in the header": lambda: ('"' + text).encode(),
        "a quote inside": lambda: text.replace("cat", 'c"t').encode(),
        "line breaks in quotes": lambda: text.replace(",cat", ',"ca\nt"').encode(),
        "carriage returns": lambda: text.replace("\n", "\r").encode(),
        "Windows line ends": lambda: text.replace("\n", "\r\n").encode(),
        "semicolons": lambda: text.replace(",", ";").encode(),
        "tabs": lambda: text.replace(",", "\t").encode(),
        "bars": lambda: text.replace(",", "|").encode(),
        "spaces after commas": lambda: text.replace(",", ", ").encode(),
        "a thousand columns": lambda: "\n".join(line + "," * 1000 for line in lines).encode(),
        "the header twice": lambda: "\n".join([lines[0], *lines]).encode(),
        "no header": lambda: "\n".join(lines[1:]).encode(),
        "a comment": lambda: f"# made by hand\n{text}".encode(),
    }
    how = random.choice([*sorted(ways), "damaged"])
    return damaged(text.encode(), random) if how == "damaged" else (how, ways[how]())


def _changed(table: pd.DataFrame, random: Random) -> tuple[str, pd.DataFrame]:
    """A table with another column or other values, in either format."""
    name = random.choice(list(table.columns))
    row = random.randrange(len(table))

    def one(value: str) -> pd.DataFrame:
        changed = table.copy()
        changed.loc[row, name] = value
        return changed

    ways: dict[str, Callable[[], pd.DataFrame]] = {
        "missing": lambda: table.drop(columns=name),
        "no rows": lambda: table[:0],
        "one row": lambda: table[:1],
        "twice": lambda: pd.concat([table, table]),
        "the column twice": lambda: table.join(table[[name]].add_suffix("2")).rename(columns={f"{name}2": name}),
        "in capitals": lambda: table.rename(columns={name: name.upper()}),
        "with spaces around": lambda: table.rename(columns={name: f" {name} "}),
        "row numbers beside": lambda: table.assign(x=range(len(table))),
        "row numbers instead of paths": lambda: table.assign(x=range(len(table))).drop(columns="path"),
        "all empty": lambda: table.assign(**{name: ""}),
        "all the same": lambda: table.assign(**{name: table[name][0]}),
        "all different": lambda: table.assign(**{name: [f"{v}-{i}" for i, v in enumerate(table[name])]}),
        "numbers": lambda: table.assign(**{name: range(len(table))}),
        "fractions": lambda: table.assign(**{name: [i / 7 for i in range(len(table))]}),
        "an empty cell": lambda: one(""),
        "a cell of spaces": lambda: one("   "),
        "a file that is not there": lambda: one("photos/none.jpg"),
        "a folder": lambda: one("photos"),
        "a path that leads out": lambda: one("../../etc/passwd"),
        "an absolute path": lambda: one("/etc/passwd"),
        "a manifest in itself": lambda: one("new.csv"),
        "a backslash": lambda: one("photos\\clinic\\cat\\0.jpg"),
        "a path of 5,000 characters": lambda: one("x" * 5000),
        "a deep path": lambda: one("x/" * 2000 + "x.jpg"),
        "a NUL": lambda: one("ph\x00to.jpg"),
        "a surrogate": lambda: one("ph\udcffto.jpg"),
        "a line break": lambda: one("a\nb.jpg"),
        "1e999": lambda: one("1e999"),
        "a formula": lambda: one("=1+1"),
        "markup": lambda: one("[red]<b>x</b>[/red]"),
    }
    how = random.choice(sorted(ways))
    return f"{name}, row {row}: {how}", ways[how]()


def _parquet(table: pd.DataFrame, random: Random) -> tuple[str, bytes]:
    content = io.BytesIO()
    if random.random() < 0.3:
        table.to_parquet(content)
        return damaged(content.getvalue(), random)
    how, changed = _changed(table, random)
    name = random.choice(list(table.columns))
    if random.random() < 0.4 and name in changed and changed.columns.is_unique:
        values: dict[str, list[object]] = {
            "lists": [[1, 2]] * len(changed),
            "nulls": [None] * len(changed),
            "dates": list(pd.date_range("2020", periods=len(changed))),
            "bytes": [b"\xff"] * len(changed),
            "Booleans": [True] * len(changed),
            "decimals": [float("nan")] * len(changed),
        }
        kind = random.choice(sorted(values))
        changed, how = changed.assign(**{name: values[kind]}), f"{name}: {kind}"
    try:
        changed.to_parquet(content)
    except (ValueError, UnicodeEncodeError):  # no Parquet file can hold it
        table.to_parquet(content)
        return damaged(content.getvalue(), random)
    return how, content.getvalue()
