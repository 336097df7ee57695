"""Output that would replace other results: refused, or given another name."""

from itertools import chain, count
from pathlib import Path

PLANS = Path(__file__).parent / "plans"
"""The plans of the paper's tables, for `sweep --plan` and `reproduce`."""


def refuse_foreign(out: Path, own: bool) -> None:
    """Refuse a folder with a page or a run, unless they are the command's own: its page would replace them."""
    found = [file for name in ("report.html", "spec.json") if (file := out / name).exists()]
    if found and not own:
        raise ValueError(f"{out} already contains {found[0].name} from another command; choose another --out")


def require_page(out: Path | None) -> None:
    """Refuse a page whose name does not end in .html."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html")


def unused_path(name: str) -> Path:
    """This name in the working folder, with a number if it is taken.

    >>> unused_path("no-such-run").name
    'no-such-run'
    """
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(one for one in chain([path], numbered) if not one.exists())
