"""Write the tables of docs/algorithms.md from the algorithms themselves: `python examples/algorithm_page.py`."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from crosstail.algorithms import Algorithm, catalogue
from crosstail.algorithms._catalogue import preset_entries

PAGE = Path(__file__).parents[1] / "docs/algorithms.md"
BEGIN, END = "<!-- written by examples/algorithm_page.py -->\n", "<!-- end -->\n"


def table() -> str:
    """One table per family."""
    common = {f.name for f in fields(Algorithm.Hparams)}
    lines = [
        "",
        "All have " + "; ".join(_described(f.name, f.default, f.metadata) for f in fields(Algorithm.Hparams)) + ".",
    ]
    family = ""
    for entry in [each for first in catalogue() for each in (first, *preset_entries(first))]:
        if entry.family != family:
            family = entry.family
            lines += ["", f"### {family[0].upper()}{family[1:]}", ""]
            lines += ["| name | what | cost | hyperparameters | differs from the paper |", "|---|---|---|---|---|"]
        own = [h for h in entry.hyperparameters if h["name"] not in common]
        hparams = "<br>".join(_described(h["name"], h["default"], h) for h in own)
        paper = f"{entry.what} ({entry.paper}, {entry.year})"
        cells = [f"`{entry.name}`", paper, f"{entry.passes:g}", hparams or "–", "; ".join(entry.differs) or "–"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", ""])


def _described(name: str, default: Any, about: Mapping[str, Any]) -> str:
    return f"`{name}` {default:{'g' if isinstance(default, float) else ''}}: {about['meaning']}" + (
        f" ({about['search']})" if about["search"] else ""
    )


def page(text: str) -> str:
    """The page with new tables between its two markers."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
