"""Which folder names the split, the domain and the class of the images below it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crosstail.data.dataset import SPLIT_NAMES

ONE_DOMAIN = "all"  # of images without domains

Parts = tuple[str, ...]  # the names on the way from the root to a folder


@dataclass(frozen=True)
class Layout:
    """Where names stand in a path: [WRAPPER/][SPLIT/][DOMAIN/][SPLIT/]CLASS/, and any folders below."""

    wrapper: str | None = None
    split_at: int | None = None
    domains: bool = True

    def place(self, folder: Parts) -> tuple[str, str, str] | None:
        """The split (or ""), domain and class of a folder's images; None if they are in no class folder."""
        names, split = list(folder[self.wrapper is not None :]), ""
        if self.split_at is not None:
            if len(names) <= self.split_at:
                return None
            split = SPLIT_NAMES.get(names.pop(self.split_at).lower(), "")
            if not split:
                return None
        if not self.domains:
            names.insert(0, ONE_DOMAIN)
        return (split, names[0], names[1]) if len(names) > 1 else None

    @property
    def depth(self) -> int:
        """The number of folders from the root to a class."""
        return 1 + (self.wrapper is not None) + (self.split_at is not None) + self.domains

    def notes(self, images: int) -> Iterator[str]:
        """What a reader of ROOT/<domain>/<class>/<image> would not expect."""
        if self.wrapper is not None:
            yield f"everything is in one folder, {self.wrapper}: the domains are the folders in it"
        if self.split_at is not None:
            yield "folders such as train and test define the split"
        if not self.domains:
            yield f"no folders for domains: all {images:,} images are in one domain, {ONE_DOMAIN!r}"


def layout_of(images: Mapping[Parts, int]) -> Layout:
    """The layout of folders that hold these numbers of images.

    >>> layout_of({("web", "cat"): 9, ("web", "dog"): 9})
    Layout(wrapper=None, split_at=None, domains=True)
    >>> layout_of({("train", "cat"): 9, ("val", "cat"): 2, ("train", "dog"): 5})
    Layout(wrapper=None, split_at=0, domains=False)
    """
    wrapper = _wrapper(images)
    if wrapper is not None:
        images = {folder[1:]: number for folder, number in images.items()}
    split_at = next((at for at in (0, 1) if _are_splits(images, at)), None)
    depths: Counter[bool] = Counter()
    for folder, number in images.items():
        if split_at is None or (len(folder) > split_at and folder[split_at].lower() in SPLIT_NAMES):
            depths[len(folder) > 1 + (split_at is not None)] += number
    return Layout(wrapper, split_at, depths[True] >= depths[False])


def _are_splits(images: Mapping[Parts, int], at: int) -> bool:
    """Whether the names at a depth are splits, two or more; other folders may stand beside them at the top only."""
    names = {folder[at].lower() for folder in images if len(folder) > at}
    found = {SPLIT_NAMES[name] for name in names if name in SPLIT_NAMES}
    return len(found) > 1 and (at == 0 or names <= SPLIT_NAMES.keys())


def _wrapper(images: Mapping[Parts, int]) -> str | None:
    """The only folder at the top, if two levels below it look like classes: most names are in several folders."""
    if len({folder[:1] for folder in images}) != 1 or any(len(folder) < 3 for folder in images):
        return None
    above: defaultdict[str, set[str]] = defaultdict(set)
    for folder in images:
        above[folder[2]].add(folder[1])
    several = sum(len(folders) > 1 for folders in above.values())
    return next(iter(images))[0] if 2 * several > len(above) else None
