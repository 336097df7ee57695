"""Fitting `blend` on 8,000 × 1,280 features in 28 pairs, and on a file at DomainNet's shape, 470,000 × 2,048 in 2,070.

The file is measured at two smaller numbers of rows in one thread: the seconds of twice the rows as a ratio, which is
about 2 if cost is linear, and the peak of memory without the mapped file. Only the sums of a pass grow with the rows,
so the peak is that of the full size, extrapolated linearly.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from bench._memory import Usage, usage_of
from bench._rows import Row
from bench._timing import interleave
from crosstail.second_stages import Features, FittedStage, Rows, find

DOMAINS, CLASSES, FEATURES = 6, 345, 2048  # DomainNet through a ResNet-50
FULL, ROWS, QUICK_ROWS = 470_000, 160_000, 50_000  # 0.65 GB in float16, and half of it
CHUNK = 8_192


def long_tailed(samples: int, domains: int, classes: int, num_features: int) -> Features:
    """Non-negative features around a centre of every class and domain, with opposite tails in every other domain."""
    generator = np.random.default_rng(0)
    share = 0.01 ** (np.arange(classes) / (classes - 1))
    table = np.stack([share[:: 1 if d % 2 else -1] for d in range(domains)]).ravel()
    pair = generator.choice(domains * classes, samples, p=table / table.sum())
    domain, y = np.divmod(pair, classes)
    of_class, of_domain = (generator.normal(size=(n, num_features)) for n in (classes, domains))
    z = 0.3 * of_class[y] + 0.2 * of_domain[domain] + generator.normal(size=(samples, num_features))
    counts = np.bincount(pair, minlength=domains * classes).reshape(domains, classes)
    return Features(np.maximum(z, 0).astype(np.float32), y, domain, counts)


def fit(features: Features) -> None:
    """Fit the second stage."""
    stage = find("blend")
    assert isinstance(stage, FittedStage)
    stage.fit(features)


def fit_file(path: str, rows: str) -> None:
    """The function whose memory is measured: a fit from the first rows of a file."""
    torch.set_num_threads(1)
    x = np.lib.format.open_memmap(path, mode="r")
    domain, y = np.divmod(np.arange(int(rows)) % (DOMAINS * CLASSES), CLASSES)
    counts = np.bincount(domain * CLASSES + y, minlength=DOMAINS * CLASSES).reshape(DOMAINS, CLASSES)
    fit(Features(Rows(x, np.arange(int(rows))), y, domain, counts))


def run() -> list[Row]:
    features = long_tailed(8_000, 4, 7, 1_280)
    peer = LogisticRegression(max_iter=100)
    seconds = interleave({"ours": lambda: fit(features), "theirs": lambda: peer.fit(features.z, features.y)}, repeats=3)
    ratio = seconds["ours"] / seconds["theirs"]
    rows = [
        Row("blend, 8,000 × 1,280, 28 pairs", seconds["ours"], "", None, 5),
        Row("blend, 8,000 × 1,280, 28 pairs", seconds["ours"], "LogisticRegression, one fit", ratio, 15),
    ]
    most = QUICK_ROWS if os.environ.get("CROSSTAIL_BENCH") == "quick" else ROWS
    fewer, more = usages(most // 2, most)
    peak = more.anonymous + max(0.0, more.anonymous - fewer.anonymous) * (FULL - most) / (most - most // 2)
    name = f"blend, {FULL:,} × {FEATURES:,}, 2,070 pairs"
    rows.append(Row(name, peak, "(peak, file excluded)", None, 2048, unit="MiB"))
    name = f"blend, {most:,} × {FEATURES:,}, 2,070 pairs"
    rows.append(Row(name, more.seconds, "half the rows", more.seconds / fewer.seconds, 2.2))
    return rows


def usages(*sizes: int) -> list[Usage]:
    """Memory and seconds for some numbers of rows of a file."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        x = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(max(sizes), FEATURES))
        for start in range(0, len(x), CHUNK):
            y = np.arange(start, min(start + CHUNK, len(x))) % CLASSES
            noise = generator.standard_normal((len(y), FEATURES), dtype=np.float32)
            x[start : start + CHUNK] = np.maximum(0.3 * centres[y] + noise, 0)
        x.flush()
        return [usage_of("bench.pooled", "fit_file", str(path), str(size)) for size in sizes]
