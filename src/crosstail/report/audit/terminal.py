"""An audit in the terminal, within 80 columns."""

from math import log

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from crosstail.report.audit import tables
from crosstail.report.audit.advice import CAVEAT
from crosstail.report.audit.findings import findings
from crosstail.report.audit.inputs import EmbeddingInputs
from crosstail.report.audit.result import Audit
from crosstail.report.audit.wording import several

CLASSES, DOMAINS = 12, 8  # the largest table of counts that is shown
ROWS = 20  # domains that are listed
EXAMPLES = 3
# From light to dark, so that the number stays readable; the number itself carries the meaning.
RAMP = (
    "black on #deebf7",
    "black on #c6dbef",
    "black on #9ecae1",
    "black on #6baed6",
    "white on #3182bd",
    "white on #08519c",
)
NONE = "bold white on #b84a00"


def show(audit: Audit, console: Console) -> None:
    """Print it."""
    for title, block in blocks(audit):
        console.print(Text(title, style="bold"))
        console.print(block, highlight=False)
        console.print()


def blocks(audit: Audit) -> list[tuple[str, RenderableType]]:
    """The parts from top to bottom, each with its title."""
    what = several(audit.num_samples, "image" if audit.is_image else "embedding")
    size = f"{several(len(audit.domains), 'domain')} × {several(len(audit.classes), 'class', 'classes')}"
    found: list[tuple[str, RenderableType]] = [(f"{audit.name}: {what}, {size}", _domains(audit))]
    if len(audit.classes) <= CLASSES and len(audit.domains) <= DOMAINS:
        found.append(("Training samples per pair", count_grid(audit)))
    found.append(("Label divergence of the training set, bits: 0 the same, 1 no class in common", _divergence(audit)))
    if isinstance(audit.inputs, EmbeddingInputs):
        found.append(("Embeddings", Text(tables.embedding_sentence(audit.inputs))))
    else:
        found.append(("Images, width × height by area", _table(tables.IMAGE_COLUMNS, tables.image_rows(audit))))
    found.append(("What to look at", _findings(audit)))
    expected = [*((sentence, "") for sentence in audit.advice), (CAVEAT, "dim")]
    found.append(("What to expect", _list([("-", Text(sentence, style=style)) for sentence, style in expected])))
    return found


def count_grid(audit: Audit) -> Table:
    """Training samples per pair: classes down, domains across, cells coloured by the logarithm of the count."""
    width = max(5, min(10, 56 // len(audit.domains) - 1))
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for domain in audit.domains:
        table.add_column(Text(cut(domain, width)), justify="right", no_wrap=True)
    largest = max(int(audit.train.max(initial=0)), 2)
    for c, name in enumerate(audit.classes):
        cells = [Text(f"{n:>{width}}", style=_shade(n, largest)) for n in audit.train[:, c].tolist()]
        table.add_row(Text(cut(name, 20)), *cells)
    return table


def _shade(n: int, largest: int) -> str:
    return NONE if n == 0 else RAMP[round(log(n) / log(largest) * (len(RAMP) - 1))]


def _domains(audit: Audit) -> Table:
    return _table(tables.DOMAIN_COLUMNS, tables.domain_rows(audit))


def _divergence(audit: Audit) -> Group:
    d = audit.divergence
    others = audit.domains if len(audit.domains) <= DOMAINS else ()
    width = max(5, min(10, 48 // max(len(others), 1) - 1))
    rows = [
        [domain, *("–" if value != value else f"{value:.2f}" for value in (d.from_uniform[i], *d.between[i]))]
        for i, domain in enumerate(audit.domains)
    ]
    if not others:  # too many to show all: the mean over the others
        between = np.where(np.eye(len(audit.domains), dtype=np.bool_), np.nan, d.between)
        mean = [float(row[~np.isnan(row)].mean()) if (~np.isnan(row)).any() else 0.0 for row in between]
        rows = [[row[0], row[1], f"{m:.2f}"] for row, m in zip(rows, mean, strict=True)]
    header = ["", "uniform", *([cut(domain, width) for domain in others] or ["other domains, mean"])]
    table = _table(header, rows)
    means = f"mean {d.imbalance:.2f} from uniform, {d.mismatch:.2f} between two; {d.chance_mismatch:.2f} by chance"
    return Group(table, Text(means, style="dim"))


def _table(header: list[str], rows: list[list[str]]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    for i, column in enumerate(header):
        table.add_column(Text(column if i else ""), justify="right" if i else "left", no_wrap=True)
    for name, *cells in rows[:ROWS]:
        table.add_row(Text(cut(name, 18)), *(Text(cell) for cell in cells))
    if len(rows) > ROWS:
        table.add_row(Text(f"and {len(rows) - ROWS:,} more", style="dim"))
    return table


def _findings(audit: Audit) -> RenderableType:
    lines: list[tuple[str, Text]] = []
    for finding in findings(audit):
        shown = [*finding.examples[:EXAMPLES]]
        rest = len(finding.examples) - len(shown)
        shown += [f"and {rest:,} more"] * (rest > 0)
        text = Text(finding.text)
        for line in ["; ".join(shown)] if sum(map(len, shown)) < 72 else shown:  # in one line where they fit
            text.append(f"\n{printable(line)}" if line else "", style="dim")
        lines.append(("!" if finding.level == "problem" else "-", text))
    return _list(lines) if lines else Text("Nothing stands out.")


def _list(lines: list[tuple[str, Text]]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for mark, text in lines:
        table.add_row(Text(mark, style="red" if mark == "!" else ""), text)
    return table


def cut(text: str, width: int) -> str:
    """The text, cut to a width.

    >>> cut("handwritten", 8)
    'handwri…'
    """
    text = printable(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def printable(text: str) -> str:
    """The text without what would move the cursor: names of files may have anything in them.

    >>> printable("cat\\x1b[2J")
    'cat�[2J'
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
