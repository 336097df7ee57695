"""A table as CSV with all numbers, and as Markdown and LaTeX to paste into a text."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from crosstail.report.compare.tables import figures_of

LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--"}
LATEX |= {sign: rf"\{sign}" for sign in "&%$#_{}"}
GREEK = {"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ν": r"$\nu$", "−": "$-$", "•": r"$\bullet$"}


@dataclass(frozen=True)
class TextTable:
    """A table as it is read: cells in words, the best of them marked, and the numbers behind it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: pd.DataFrame
    best: set[tuple[int, int]] = field(default_factory=set)
    note: str = ""


def markdown(table: TextTable) -> str:
    """Markdown, the best in bold.

    >>> print(markdown(TextTable("t", "T", ["a|b"], [["1"]], pd.DataFrame(), {(0, 0)})))
    | a\\|b |
    |---|
    | **1** |
    """
    rows = [[escaped(cell) for cell in row] for row in (table.header, *table.rows)]
    for i, j in table.best:
        rows[i + 1][j] = f"**{rows[i + 1][j]}**"
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(table.header), *body])


def escaped(text: str) -> str:
    """Text in which Markdown finds nothing to obey.

    >>> print(escaped("<b>a_b &amp; [c](d)"))
    \\<b\\>a\\_b \\&amp; \\[c\\](d)
    """
    return re.sub(r"([\\|*_`<>\[\]&~$])", r"\\\1", " ".join(text.splitlines()))


def latex(table: TextTable) -> str:
    """A tabular with booktabs' rules, the best in bold."""
    lines = [[tex(cell) for cell in table.header]]
    for i, row in enumerate(table.rows):
        lines.append([rf"\textbf{{{tex(c)}}}" if (i, j) in table.best else tex(c) for j, c in enumerate(row)])
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    columns = "l" + "r" * (len(table.header) - 1)
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    )


def tex(text: str) -> str:
    """Text in which LaTeX finds nothing to obey.

    >>> tex("a_b & 5 %")
    'a\\\\_b \\\\& 5 \\\\%'
    """
    return "".join((LATEX | GREEK).get(sign, sign) for sign in text)


def save(table: TextTable, folder: Path) -> None:
    """NAME.csv, NAME.md and NAME.tex."""
    folder.mkdir(parents=True, exist_ok=True)
    table.numbers.to_csv(folder / f"{table.name}.csv", index=False)
    (folder / f"{table.name}.md").write_text(markdown(table) + "\n", encoding="utf-8")
    (folder / f"{table.name}.tex").write_text(latex(table) + "\n", encoding="utf-8")


def number(value: float | None, digits: int = 1, sign: str = "") -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None or value != value else f"{value:{sign}.{digits}f}"


def result_text(summary: pd.DataFrame, data: str, name: str, title: str) -> TextTable:
    """The results on one data set, the best over all pairs first: mean ± deviation, BoDA's rows marked by a dot."""
    of_data = summary[summary["data"] == data]
    rank = of_data[of_data["figure"] == "pair average"].set_index("method")["mean"]
    of_data = of_data.sort_values("method", key=lambda names: -names.map(rank), kind="stable")
    cells = {(row["method"], row["kind"], row["figure"]): row for row in of_data.to_dict("records")}
    figures = figures_of(of_data)
    rows, best = [], set()
    for i, (method, own) in enumerate(of_data.groupby("method", sort=False)):
        rows.append(["• " * bool(own["boda"].any()) + str(method), str(own["n"].max())])
        for j, key in enumerate(figures):
            cell = cells.get((method, *key), {"mean": None, "std": np.nan, "best": False})
            rows[i].append(number(cell["mean"]) + ("" if np.isnan(cell["std"]) else f" ± {number(cell['std'])}"))
            if cell["best"]:
                best.add((i, j + 2))
    return TextTable(name, title, ["method", "seeds", *(figure for _, figure in figures)], rows, of_data, best)
