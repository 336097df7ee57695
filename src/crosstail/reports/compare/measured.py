"""Metrics of the test samples of finished runs, from the probabilities that they have kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.criterion import Metric
from crosstail.metrics._calibration import Calibration
from crosstail.metrics.pair_metrics import MetricValues, metric_values, standard_error
from crosstail.training.folder import RunFolder
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import PROBABILITIES

Z = 1.96  # of a 95 % interval


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric of one model, or of those of several folds on their test samples together."""

    of: MetricValues
    samples: NDArray[np.int64]  # (3, N): row in the data, class, domain
    group: NDArray[np.int64] | None

    def means(self) -> tuple[float | None, float | None]:
        """Means over pairs and over domains."""
        pairs, domains = (of[~np.isnan(of)] for of in (self.of.pairs, self.of.domains))
        return (float(pairs.mean()), float(domains.mean())) if len(pairs) else (None, None)

    def errors(self) -> tuple[float, float]:
        """Standard errors of the means."""
        pairs, domains = self.of.influence
        return standard_error(pairs, self.group), standard_error(domains, self.group)


def lacking(folder: Path) -> bool:
    """Whether a run has no stored probabilities."""
    return not (folder / PROBABILITIES).exists()


@lru_cache(maxsize=4096)
def measured(folders: tuple[Path, ...], domains: tuple[str, ...], metric: Metric, known: bool) -> Measured:
    """A metric of the calibrated probabilities of runs, as `crosstail predict` gives them."""
    parts = [_of_run(folder, domains, known) for folder in folders]
    p, predicted, samples, group = (_joined(part) for part in zip(*parts, strict=True))
    values = metric_values(metric, p, predicted, samples[1], samples[2], len(domains))
    return Measured(values, samples, group)


def _of_run(folder: Path, domains: tuple[str, ...], known: bool) -> tuple[Any, ...]:
    kept = Probabilities.load(RunFolder(folder))
    assert kept is not None  # runs that lack them are left out
    test = kept.part(test=True)
    given = RunFolder(folder).calibration() or Calibration.none(domains, test.unknown.shape[1])
    known = known and test.known is not None
    p = given.probabilities(test.told() if known else test.unknown, test.domain if known else -1, domains)
    predicted = test.known_predicted if known else test.predicted
    return p, predicted, np.stack([test.row, test.y, test.domain]), test.group


def _joined(parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts, axis=-1 if parts[0].dtype == np.int64 else 0)
