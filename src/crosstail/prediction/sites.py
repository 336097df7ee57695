"""The sites of inputs: one for all of them, by folder, or from a column."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.prediction.predictor import UNKNOWN, Predictor

COLUMN = "column:"


@dataclass(frozen=True)
class Sites:
    """The site of each input by name and as a domain of the model, with notes."""

    names: Sequence[str | None]
    domain: NDArray[np.int64]
    notes: tuple[str, ...]


def sites_of(predictor: Predictor, names: Sequence[str], site: str | None, table: pd.DataFrame | None) -> Sites:
    """The sites of inputs with these names: `site` for all, or by `folder` or `column:NAME` of their table."""
    if site is None or site in predictor.sites or (site != "folder" and not site.startswith(COLUMN)):
        note = predictor.site_note(site)
        return Sites([site] * len(names), np.full(len(names), predictor.site(site)), (note,) if note else ())
    if site == "folder":
        known = [[part for part in PurePath(name).parts[:-1] if part in predictor.sites] for name in names]
        each = [path[-1] if path else None for path in known]  # the innermost
    else:
        column = site.removeprefix(COLUMN)
        if table is None or column not in table:
            found = "the inputs are not a .csv" if table is None else f"it has {', '.join(table.columns)}"
            raise ValueError(f"--site {site}: there is no column {column!r}: {found}")
        each = [None if pd.isna(value) else str(value) for value in table[column]]
    domain = np.array([predictor.site(name) for name in each], np.int64)
    notes = []
    if not predictor.algorithm.uses_domain:
        notes.append(predictor.site_note(next(iter(predictor.sites))))
    for name, number in Counter(n for n, d in zip(each, domain, strict=True) if d == UNKNOWN).items():
        what = "no known site in their path" if name is None else f"the site {name!r}, which is new to the model"
        notes.append(f"{number:,} inputs have {what}: their site is treated as unknown")
    return Sites(each, domain, tuple(notes))
