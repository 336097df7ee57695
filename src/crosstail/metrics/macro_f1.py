"""Macro F1: the F1 of each class among the samples of a domain, averaged over the classes."""

import numpy as np

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._values import Computed, by_class, root_sum
from crosstail.pairs import pair_number


def f1(answers: Answers) -> Computed:
    """F1 = 2 h / (n + m) for h hits of n samples, m of them and of others taken for the class; its derivatives.

    A class without samples has no F1, but what is wrongly taken for it still counts against the true classes.
    """
    pair, pairs = answers.pair, answers.counts.size
    said = pair_number(answers.predicted, answers.domain, len(answers.classes))
    totals, taken = np.bincount(pair, minlength=pairs), np.bincount(said, minlength=pairs)
    hits, both = np.bincount(pair[pair == said], minlength=pairs), totals + taken
    found = np.divide(2 * hits, both, where=totals > 0, out=np.full(pairs, np.nan))
    right = pair == said
    own = np.where(right, 2 - 2 * found[pair], -found[pair]) / both[pair]
    taken_for = np.where(right | (totals[said] == 0), 0.0, -np.nan_to_num(found[said]) / both[said])
    errors = np.hypot(root_sum(own, pair, pairs), root_sum(taken_for, said, pairs))
    return Computed(found, errors, own + taken_for)


def over_all_domains(answers: Answers) -> float | None:
    """Macro F1 of all samples together, whatever their domain; None without samples."""
    found = f1(answers.in_one_domain()).values
    known = found[~np.isnan(found)]
    return float(known.mean()) if len(known) else None


METRIC = Metric(label="macro F1", of=by_class(f1), needs="predicted", selected=over_all_domains)
