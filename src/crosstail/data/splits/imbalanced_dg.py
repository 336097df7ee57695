"""Imbalanced domain generalisation: training counts of every pair for every unseen domain, as published.

`imbalanced_dg.npz` has the counts of the settings that Cao et al. (2026, the paper of NDCL) use on four benchmarks, and
the thresholds of their shots. They are facts about splits, stored as (unseen domain, domain, class) in the order of the
data sheets; the images of a pair are drawn here.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import UNUSED, DomainDataset
from crosstail.data.sources.benchmark import benchmark_of

if TYPE_CHECKING:
    from crosstail.data.spec import DataSpec

SETTINGS = ("heavy-tail", "duality", "cross", "idg")
_USE = 6  # keeps this use of a seed apart from others
ZERO, FEW, MEDIUM, MANY = range(4)


class Setting(NamedTuple):
    """The counts of a setting on a benchmark."""

    counts: NDArray[np.int64]  # (D, D, C), of the training samples where the first domain is unseen
    shots: NDArray[np.int64]  # (D, 2): where it is unseen, above the first number is many-shot, below the second few
    validation: int  # samples of every source pair

    def table(self) -> NDArray[np.int64]:
        """The shot of every class where a domain is unseen (D, C): by its mean count over the source domains."""
        mean = self.counts.sum(1) / (len(self.counts) - 1)
        many, few = self.shots[:, :1], self.shots[:, 1:]
        return np.select([mean == 0, mean > many, mean < few], [ZERO, MANY, FEW], MEDIUM)


def setting_of(spec: "DataSpec") -> Setting | None:
    """The setting that a spec names as its labels, if it is one."""
    name = next(iter(spec.labels or ()), "")
    if name not in SETTINGS:
        return None
    if not spec.unseen_domains:
        raise ValueError(f"--labels {name} says what is trained on where a domain is unseen: add --protocol dg")
    found, benchmark = _stored(), benchmark_of(spec.dataset)
    if (benchmark, name) not in found:
        known = ", ".join(data for data, setting in found if setting == name)
        raise ValueError(f"--labels {name}: there are counts for {known}, not for {spec.dataset}")
    return found[benchmark or "", name]


@cache
def _stored() -> dict[tuple[str, str], Setting]:
    with np.load(Path(__file__).with_suffix(".npz")) as file:
        keys = [key for key in file.files if key.count("/") == 1]
        parts = {key: (file[key].astype(np.int64), file[f"{key}/shots"].astype(np.int64)) for key in keys}
        found = {key: Setting(*arrays, int(file[f"{key}/validation"])) for key, arrays in parts.items()}
    return {(key.split("/")[0], key.split("/")[1]): setting for key, setting in found.items()}


def imbalanced(dataset: DomainDataset, unseen: str, setting: Setting, seeds: Sequence[int]) -> DomainDataset:
    """The counts of a setting for training, its number for validation, and the unseen domain for test.

    Which images a pair keeps depends on the seeds alone, so that a smaller count has a subset of a larger one.
    """
    u = dataset.domains.index(unseen)
    rows, pair = dataset.cells()
    split = np.full(len(dataset), UNUSED, "<U5")
    split[dataset.domain == u] = "test"
    for (d, c), count in np.ndenumerate(setting.counts[u]):
        own = rows[pair == d * dataset.num_classes + c]
        if d == u:
            continue
        if len(own) < count + setting.validation:
            needed = f"{count} for training and {setting.validation} for validation"
            name = f"{dataset.domains[d]} / {dataset.classes[c]}"
            raise ValueError(f"{dataset.name}: {name} has {len(own)} images, expected {needed} (unseen: {unseen})")
        own = np.random.default_rng([*seeds, d, c, _USE]).permutation(own)
        split[own[: setting.validation]] = "val"
        split[own[setting.validation : setting.validation + count]] = "train"
    return replace(dataset, split=split)
