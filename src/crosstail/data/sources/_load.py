"""`load`: any source to a DomainDataset."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import AnyPath
from crosstail.data.names import Decision, listed
from crosstail.data.sources import Columns, find, others
from crosstail.data.sources._as_dataset import SourceOptions
from crosstail.data.sources._locate import require_source
from crosstail.data.spec import DataSpec
from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import apply_labels
from crosstail.progress import Progress


def load(
    source: AnyPath | pd.DataFrame | Any,
    *,
    labels: Sequence[str] | None = None,
    seed: int = 0,
    skip_broken: bool = False,
    columns: Columns = None,
    root: AnyPath | None = None,
    group_by: str | None = None,
    names: Decision | None = None,
    progress: Progress | None = None,
) -> DomainDataset:
    """Load a benchmark (`NAME` or `NAME:FOLDER`), a folder, a manifest, an .npz file or "hf:NAME".

    Or an object: a DataFrame with the columns of a manifest (`load_frame`), a data set of the Hugging Face library
    `datasets` (`load_hf`), or one of torch (`load_torch`).

    `labels` are label profiles, one per domain or one for all. By default a benchmark has its data sheet's, and other
    sources have none; `["uniform"]` keeps all samples. `skip_broken` leaves out images that cannot be decoded and
    names them in the notes; for `columns` and `root` see `load_manifest`; `group_by` is a regular expression that
    finds the group in the path of an image, as in "patient\\d+". `names` says whether names that differ only in
    case, in spaces around them or in Unicode form are one name ("merge") or several ("keep"); by default, the data set
    lists them as `same_names`. A benchmark takes precedence over a folder of the same name: write `./digits` for the
    folder.

    >>> load("digits", labels=["uniform"]).counts("train")[0].tolist()
    [57, 57, 57, 57, 57, 57, 57, 57, 57, 57]
    >>> load("digits").counts("train")[0].tolist()
    [57, 36, 23, 14, 9, 6, 3, 2, 1, 1]
    """
    if (found := find(source)) is None:
        if isinstance(source, (str, PathLike)):
            require_source(str(source))
            raise ValueError(f"{Path(source)}: is not a kind of file that can be loaded. {others()}")
        expected = "expected a path or name, a DataFrame, or a data set of torch or Hugging Face"
        raise ValueError(f"{type(source).__name__}: is not a kind of object that can be loaded; {expected}")
    if columns and not found.columned:
        role, column = next(iter(columns.items()))
        why = "only a .csv or .parquet manifest and hf:NAME have columns to name"
        raise ValueError(f"{source}: --column {role}={column} has no meaning here; {why}")
    options: SourceOptions = {"seed": seed, "skip_broken": skip_broken, "group_by": group_by}
    options |= {"names": names, "progress": progress}
    dataset = found.load(source, root=root, **({"columns": columns} if found.columned else {}), **options)
    if dataset.num_classes < 2:
        name = source if isinstance(source, (str, PathLike)) else dataset.name
        raise ValueError(f"{name}: has one class ({', '.join(dataset.classes)}), expected two or more")
    sheet = sheet_of(source) if labels is None and isinstance(source, str) else None
    return with_gaps_noted(apply_labels(dataset, sheet.labels if sheet else labels, seed))


def load_source(spec: DataSpec, progress: Progress | None = None, *, decided: bool = True) -> DomainDataset:
    """All samples of a spec, before its protocol and profiles; unless `decided` is False, no name has two spellings."""
    dataset = load(
        spec.dataset,
        labels=(),
        seed=spec.data_seed,
        skip_broken=spec.skip_broken,
        columns=spec.columns or None,
        group_by=spec.group_by,
        names=spec.names,
        progress=progress,
    )
    if decided and dataset.same_names:
        found = f"{spec.dataset}: names that differ only in case, spaces or Unicode form: {listed(dataset.same_names)}"
        raise ValueError(f"{found}. Say what they are: --names merge (one name) or --names keep (several)")
    return dataset
