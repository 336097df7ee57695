"""Write the tables of algorithms.md and second-stages.md in docs/: `python examples/algorithm_page.py`."""

from pathlib import Path
from typing import Any

from crosstail import algorithms, second_stages
from crosstail.algorithms._catalogue import preset_entries

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- written by examples/algorithm_page.py -->\n", "<!-- end -->\n"


def algorithm_tables() -> str:
    """One table per family."""
    entries = [each for first in algorithms.catalogue() for each in (first, *preset_entries(first))]
    common = next(entry.hyperparameters for entry in entries if entry.name == "erm")
    lines = ["", "All have " + "; ".join(map(_described, common)) + "."]
    family = ""
    for entry in entries:
        if entry.family != family:
            family = entry.family
            lines += ["", f"### {family[0].upper()}{family[1:]}", ""]
            lines += ["| name | what | cost | hyperparameters | differs from the paper or from public code |"]
            lines += ["|---|---|---|---|---|"]
        hparams = "<br>".join(_described(h) for h in entry.hyperparameters if h not in common)
        paper = f"{entry.what} ({entry.paper}, {entry.year})"
        cells = [f"`{entry.name}`", paper, f"{entry.passes:g}", hparams or "–", "; ".join(entry.differs) or "–"]
        lines.append(_row(cells))
    return "\n".join([*lines, "", ""])


def second_stage_table() -> str:
    """One row per second stage."""
    lines = ["", "| name | what | kind | differs from the paper |", "|---|---|---|---|"]
    for entry in second_stages.catalogue():
        paper = f"{entry.what} ({entry.paper}, {entry.year})"
        lines.append(_row([f"`{entry.name}`", paper, entry.kind, "; ".join(entry.differs) or "–"]))
    return "\n".join([*lines, "", ""])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _described(hparam: dict[str, Any]) -> str:
    default = hparam["default"]
    shown = f"`{hparam['name']}` {default:{'g' if isinstance(default, float) else ''}}: {hparam['meaning']}"
    return shown + (f" ({hparam['search']})" if hparam["search"] else "")


PAGES = {DOCS / "algorithms.md": algorithm_tables, DOCS / "second-stages.md": second_stage_table}


def page(path: Path) -> str:
    """A page with new tables between its two markers."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + PAGES[path]() + END + rest.split(END)[1]


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
