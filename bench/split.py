"""Splitting 1,000,000 samples in 200,000 groups and 2,000 pairs, and folds against scikit-learn's on a smaller set."""

import warnings

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from bench._memory import usage_of
from bench._rows import Row
from bench._timing import interleave
from crosstail.data.splits.default import default_split
from crosstail.data.splits.groups import Codes, fold_of


def grouped(samples: int, groups: int, pairs: int) -> tuple[Codes, Codes]:
    """Pair and group (N,) of each sample: pairs with a long tail, and three samples in a hundred in a foreign pair."""
    generator = np.random.default_rng(0)
    group = generator.integers(groups, size=samples)
    home = generator.zipf(1.3, size=groups) % pairs
    foreign = generator.random(samples) < 0.03
    return np.where(foreign, generator.integers(pairs, size=samples), home[group]), group


def split_a_million() -> None:
    """The split whose memory is measured."""
    pair, group = grouped(1_000_000, 200_000, 2_000)
    default_split(pair % 100, pair // 100, group)


def run() -> list[Row]:
    pair, group = grouped(1_000_000, 200_000, 2_000)
    large = interleave(
        {
            "own split": lambda: default_split(pair % 100, pair // 100, group),
            "5 folds": lambda: fold_of(pair, group, 5, seed=0),
        },
        repeats=3,
    )
    rows = [Row(f"{name}, 1,000,000 rows", seconds, "", None, 5) for name, seconds in large.items()]
    usage = usage_of("bench.split", "split_a_million")
    rows.append(Row("own split, 1,000,000 rows", usage.resident, "(peak)", None, 2048, unit="MiB"))

    few_pairs, few_groups = grouped(20_000, 4_000, 200)
    peer = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs with fewer samples than folds
        seconds = interleave(
            {
                "ours": lambda: fold_of(few_pairs, few_groups, 5, seed=0),
                "theirs": lambda: list(peer.split(few_pairs, few_pairs, few_groups)),
            },
            repeats=3,
        )
    ratio = seconds["theirs"] / seconds["ours"]
    rows.append(Row("5 folds, 20,000 rows", seconds["ours"], "StratifiedGroupKFold", ratio, 10, "at least"))
    return rows
