"""Papers that docstrings cite, and families that algorithms belong to; needs no torch."""

import inspect
import re

FAMILIES = (
    *("vanilla", "robust optimisation", "regularisation", "augmentation", "meta-learning", "invariance"),
    *("transfer", "multi-task", "imbalance", "ours", "own"),
)
_PAPER = re.compile(r"^(?P<what>.*?)\s*\((?P<paper>[^()]*?),?\s*(?P<year>(?:19|20)\d\d)[^()]*\)", re.DOTALL)


def cited(name: str, docstring: str | None) -> tuple[str, str, int]:
    """What a docstring describes up to its first paper, and the paper's authors and year.

    >>> cited("erm", "ERM: mean cross-entropy (Vapnik, 1999).")
    ('ERM: mean cross-entropy', 'Vapnik', 1999)
    """
    found = _PAPER.search(inspect.cleandoc(docstring or ""))
    if found is None:
        raise ValueError(f"{name}: the docstring cites no paper, as in (Vapnik, 1999)")
    what, paper = (" ".join(found[part].split()) for part in ("what", "paper"))
    return what, paper, int(found["year"])
