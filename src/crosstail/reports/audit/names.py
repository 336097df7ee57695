"""Names of classes or domains that are nearly the same, one of which may be a slip."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from crosstail.data.names import folded

LETTERS = 8  # of both names, from which one letter more, less or different is probably a slip
PLURALS = {"s": "", "es": "", "ies": "y"}  # endings, and what the singular has instead


def near_names(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of names of which one is the plural of the other, or which are long and differ in one letter.

    A name with another digit is another name, such as that of another place.

    >>> near_names(["horse", "horses", "art_painting", "art_paintin", "location_43", "location_46", "cat", "car"])
    [('horse', 'horses'), ('art_painting', 'art_paintin')]
    """
    sharing: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(map(folded, names)):
        for part in {name, *_singulars(name), *_shortened(name)}:
            sharing[part].append(i)
    close = {pair for found in sharing.values() for pair in combinations(found, 2)}
    return [(names[i], names[j]) for i, j in sorted(close) if _near(folded(names[i]), folded(names[j]))]


def _singulars(name: str) -> Iterator[str]:
    return (name.removesuffix(ending) + own for ending, own in PLURALS.items() if name.endswith(ending))


def _shortened(name: str) -> Iterator[str]:
    """The name without one of its letters, if it is long; digits tell names apart."""
    return (name[:i] + name[i + 1 :] for i, c in enumerate(name) if len(name) >= LETTERS and not c.isdigit())


def _near(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if short in _singulars(long):
        return len(short) > 2 and not short[-1].isdigit()
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    replaced = len(short) == len(long)
    differing = long[start : start + 1] + short[start : start + replaced]
    slip = short[start + replaced :] == long[start + 1 :] and not any(map(str.isdigit, differing))
    return slip and short != long and len(short) >= LETTERS
