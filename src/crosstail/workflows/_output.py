"""Output that would replace the results of another command."""

from pathlib import Path


def refuse_foreign(out: Path, own: bool) -> None:
    """Refuse a folder with a page or a run, unless they are the command's own: its page would replace them."""
    found = [file for name in ("report.html", "spec.json") if (file := out / name).exists()]
    if found and not own:
        raise ValueError(f"{out} already contains {found[0].name} from another command; choose another --out")
