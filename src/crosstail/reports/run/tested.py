"""What pages and tables show of a model: the accuracy of every pair, whatever it was computed from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics import Answers, PairAccuracy, shot_group, wilson
from crosstail.reports.label_table import label_table
from crosstail.reports.wording import SAME_TRACKS, TRACKS_NOTE
from crosstail.training.result import RunResult, mean_counts, pooled


def share_of(answers: Answers, hit: NDArray[np.bool_], rows: NDArray[np.bool_] | None = None) -> PairAccuracy:
    """How often something is so for the samples (N,) of each pair, or for some `rows` of them."""
    plain = replace(answers, predicted=np.where(hit, answers.y, -1), true=None, log_p=None, informed=None)
    return PairAccuracy.of(plain if rows is None else plain.keep(rows))


@dataclass(frozen=True, eq=False)
class Tested:
    """The accuracy of every pair, with the names and training counts of the pairs."""

    domains: Sequence[str]
    classes: Sequence[str]
    counts: NDArray[np.int64]  # (D, C), with folds the mean over them
    accuracy: PairAccuracy
    """A domain has the mean over its classes; under dg, the share of its samples, as the paper has it."""
    informed: PairAccuracy | None = None
    """Of the model that is told the domain, if it makes use of that."""
    shots: tuple[int, int] = (100, 20)
    critical: Sequence[str] = ()
    """Classes that must not be missed."""
    unseen: Sequence[str] = ()
    """Domains that were left out of training, if only these were tested: their counts are the sums of the others."""
    zero_shot: bool = False
    """Whether no tested domain was trained on, so that there are no shot groups."""

    @classmethod
    def of_answers(cls, answers: Answers) -> "Tested":
        """From labelled samples with a model's answers."""
        informed = PairAccuracy.of(answers.informed).by_class() if answers.informed is not None else None
        values = PairAccuracy.of(answers).by_class()
        return cls(answers.domains, answers.classes, answers.counts, values, informed, answers.shots)

    @classmethod
    def of_results(cls, results: Sequence[RunResult]) -> "Tested":
        """From a run, or several that leave out a domain or a fold each and together test every pair once."""
        first, counts = results[0], mean_counts(results)
        unseen = {r.spec.unseen: np.sum(r.counts, axis=0) for r in results if r.spec.unseen is not None}
        for domain, of_class in unseen.items():
            counts[first.domains.index(domain)] = of_class
        known = any(result.known for result in results)
        values, informed = pooled(results), pooled(results, known=True) if known else None
        if not first.spec.unseen_domains:
            values, informed = values.by_class(), informed and informed.by_class()
        about = informed, first.shots, list(first.critical), list(unseen), first.spec.unseen_domains
        return cls(first.domains, first.classes, counts, values, *about)

    @property
    def has_known(self) -> bool:
        """Whether there are two tracks that differ: with the domain unknown, and known."""
        return self.informed is not None and bool((self.accuracy.hits != self.informed.hits).any())

    @property
    def tracks_note(self) -> str:
        """A note that explains the two tracks, or that they do not differ; empty if the model ignores the domain."""
        return TRACKS_NOTE if self.has_known else SAME_TRACKS if self.informed is not None else ""

    def told(self, known: bool) -> PairAccuracy:
        """The accuracy; with the domain `known`, the same as without if the model ignores it."""
        return self.informed if known and self.informed is not None else self.accuracy

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row per pair: training count, shots, hits, test samples, accuracy in % with Wilson's interval.

        `known` is the accuracy with the domain known, if the model uses it. With unseen domains, only these have rows,
        and the count is of the class in the other domains. `top` is the upper end of an exact interval that holds
        for all pairs at once (Clopper and Pearson): a pair with a `top` below the average is low by more than chance.
        """
        from scipy.special import betaincinv  # here, because `crosstail status` does not need it

        table = label_table(self.counts, self.domains, self.classes)
        table["shot"] = shot_group(table["count"], *self.shots)
        table["hits"], table["tested"] = self.accuracy.hits.ravel(), self.accuracy.totals.ravel()
        hits, tests = self.accuracy.independent
        low, high = wilson(hits.ravel(), tests.ravel())
        table["accuracy"], table["low"], table["high"] = 100 * self.accuracy.matrix.ravel(), 100 * low, 100 * high
        every = 0.95 ** (1 / max(1, (tests > 0).sum()))
        table["top"] = np.where(tests > hits, 100 * betaincinv(hits + 1, tests - hits, (1 + every) / 2), 100.0).ravel()
        if self.has_known and self.informed is not None:
            table["known"] = 100 * self.informed.matrix.ravel()
        return table[table["domain"].isin(self.unseen)].reset_index(drop=True) if self.unseen else table
