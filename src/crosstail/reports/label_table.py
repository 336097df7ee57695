"""Label counts as a table, which charts and tables of all reports start from."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike


def label_table(counts: ArrayLike, domains: Sequence[str], classes: Sequence[str]) -> pd.DataFrame:
    """One row per pair: domain, class, count."""
    table = np.asarray(counts)
    names = {"domain": np.repeat(domains, table.shape[1]), "class": np.tile(classes, table.shape[0])}
    return pd.DataFrame({**names, "count": table.ravel()})
