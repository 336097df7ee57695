"""Duplicates as groups, so that no copy of a training image is in the test set."""

import numpy as np
import pandas as pd

from crosstail.data.examination import examine, look_alikes
from crosstail.data.images.files import Samples
from crosstail.data.images.look_alike import LIMIT
from crosstail.data.inputs import kind_of
from crosstail.data.inputs._hashes import NO_CONTENT
from crosstail.data.splits.groups import Codes, joined
from crosstail.progress import Progress


def with_duplicates(x: Samples, group: Codes | None, progress: Progress | None = None) -> Codes | None:
    """Groups (N,) that also keep duplicates together; None if every sample is a group of its own.

    Duplicates have the same content or, among up to 40,000 images, look alike.
    """
    # First, as images are hashed when they are looked at.
    alike = look_alikes(x, progress) if kind_of(x).picture and len(x) <= LIMIT else None
    hashes = examine(x).hashes
    empty = hashes == NO_CONTENT  # two broken files are not copies of each other
    hashes = np.where(empty, np.arange(len(hashes)), hashes)
    same, _ = pd.factorize(hashes)
    if alike is not None:
        same = joined(same, alike)
    group = same if group is None else joined(group, same)
    return group if int(group.max(initial=-1)) + 1 < len(group) else None
