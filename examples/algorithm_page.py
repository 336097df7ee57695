"""Write the tables of docs/algorithms.md from the algorithms themselves: `python examples/algorithm_page.py`."""

from pathlib import Path
from typing import Any

from crosstail.algorithms import catalogue
from crosstail.algorithms._catalogue import preset_entries

PAGE = Path(__file__).parents[1] / "docs/algorithms.md"
BEGIN, END = "<!-- written by examples/algorithm_page.py -->\n", "<!-- end -->\n"


def table() -> str:
    """One table per family."""
    entries = [each for first in catalogue() for each in (first, *preset_entries(first))]
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
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, "", ""])


def _described(hparam: dict[str, Any]) -> str:
    default = hparam["default"]
    shown = f"`{hparam['name']}` {default:{'g' if isinstance(default, float) else ''}}: {hparam['meaning']}"
    return shown + (f" ({hparam['search']})" if hparam["search"] else "")


def page(text: str) -> str:
    """The page with new tables between its two markers."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
