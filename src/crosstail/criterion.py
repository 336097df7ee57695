"""Metrics by name: what can be selected on, which way is better, and how a value is shown; needs no NumPy."""

from typing import Literal, TypeAlias

Criterion: TypeAlias = Literal["pair_average", "average", "worst_domain", "worst_pair", "macro_f1", "log_loss"]
"""Metrics to select on: an accuracy over pairs or domains, or one of the last two, as `PairScores` has them."""

Metric: TypeAlias = Literal[
    "accuracy", "macro_f1", "balanced_accuracy", "auroc", "log_loss", "brier", "calibration_error"
]
"""Metrics to compare methods by; all but accuracy need probabilities."""

UNBOUNDED = ("log_loss", "brier")
"""Metrics that are not shares, and so not shown in %."""

TIE = 1e-4
LOWER_IS_BETTER = (*UNBOUNDED, "calibration_error")


def sign(metric: str) -> int:
    """1 if higher is better, −1 if lower is."""
    return -1 if metric in LOWER_IS_BETTER else 1


def score(value: float | None, pair_average: float | None, on: Criterion) -> float | None:
    """Score to select by, such that larger is better for every metric; None without samples.

    The worst domain or pair is often the same at many evaluations, such as 0 for a pair that is never recognised, so
    a small share of the pair average decides between them.

    >>> score(0.8, 0.5, "log_loss"), score(0.0, 0.3, "worst_pair") > score(0.0, 0.1, "worst_pair")
    (-0.8, True)
    """
    if value is None:
        return None
    return sign(on) * value + (TIE * (pair_average or 0.0) if on in ("worst_domain", "worst_pair") else 0.0)


def scale(metric: str) -> int:
    """Factor by which a metric is multiplied for display: 100 if it is shown in %."""
    return 1 if metric in UNBOUNDED else 100


def shown(value: float | None, metric: str, unit: str = " %") -> str:
    """A metric as text, with its unit if it is a share.

    >>> shown(0.8123, "worst_pair"), shown(0.8123, "log_loss"), shown(0.5, "average", unit=""), shown(None, "average")
    ('81.2 %', '0.812', '50.0', '–')
    """
    if value is None:
        return "–"
    return f"{value:.3f}" if metric in UNBOUNDED else f"{100 * value:.1f}{unit}"
