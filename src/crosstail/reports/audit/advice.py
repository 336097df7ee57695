"""What to expect of a data set and which method to try first: rules of thumb, each with the source of its numbers."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crosstail.reports.audit.result import Audit
from crosstail.reports.wording import has

CAVEAT = "These are rules of thumb based on label counts; only training shows how different the domains look."

THRESHOLD = 0.05
"""Bits above chance from which labels count as imbalanced, or as different between domains.

A 5 : 1 tail over ten classes is 0.04 bits from uniform, a 10 : 1 tail 0.09. For comparison, the paper's data sets, from
the counts in the reference implementation's split files:
"""

PAPER_SETS = {  # (imbalance, mismatch), bits, mean over domains
    "PACS-MLT": (0.05, 0.11),
    "OfficeHome-MLT": (0.06, 0.10),
    "VLCS-MLT": (0.21, 0.16),
    "TerraInc-MLT": (0.27, 0.38),
}

OPPOSITE = 0.5
"""Bits between domains from which tails count as opposite: 100 : 1 over ten classes and its reverse are 0.72 apart."""

SCARCE = 100
"""Frozen features are advised up to this many training images in the median pair: above it, a pair is many-shot."""

NEAR = 5
"""Points between the two questions up to which the audit calls them nearly the same."""

Regime = Literal["empty", "one domain", "balanced", "same tails", "divergent"]


def regime(audit: Audit) -> Regime:
    """The paper's label configuration that is closest to the training set."""
    divergence = audit.divergence
    if np.count_nonzero(audit.train.sum(axis=0)) < 2:
        return "empty"
    uneven = divergence.imbalance - divergence.chance_imbalance > THRESHOLD
    if np.count_nonzero(divergence.samples) == 1:
        return "one domain" if uneven else "balanced"
    if divergence.mismatch - divergence.chance_mismatch > THRESHOLD:
        return "divergent"
    return "same tails" if uneven else "balanced"


def recommend(audit: Audit) -> list[str] | None:
    """Options of `crosstail fit` for the first run, beside its defaults; None without enough training data."""
    if regime(audit) == "empty":
        return None
    if not audit.kind.picture:
        return []
    if _median(audit) <= SCARCE:
        return ["--tune", "none"]
    # The default from pixels aligns domains.
    return ["--algorithm", "bsoftmax"] if np.count_nonzero(audit.divergence.samples) == 1 else []


def advice(audit: Audit) -> list[str]:
    """One to three sentences."""
    return [sentence for sentence in (_labels(audit), _questions(audit), _rare(audit), _scarce(audit)) if sentence]


def _questions(audit: Audit) -> str:
    """How far apart accuracy with all pairs alike and of samples as they come are: of guesses, before any training."""
    if regime(audit) == "empty":
        return ""
    alike, come = (100 * value for value in guessed(audit.train))
    same = "so they are nearly the same question here" if come - alike < NEAR else "so say which one you ask"
    return (
        "Two questions: if every pair is equally important, always answering the most frequent class of each domain is "
        f"right in {alike:.1f} %; of samples as they come it is right in {come:.1f} %, {same}. `crosstail fit` reports "
        "both, and `crosstail predict --prior train` gives the answers for the second."
    )


def guessed(counts: NDArray[np.int64]) -> tuple[float, float]:
    """The accuracy of always answering the most frequent class of a domain: over pairs, and of samples as they come.

    >>> guessed(np.array([[90, 10], [0, 100]]))
    (0.6666666666666666, 0.95)
    """
    return float((counts.max(1) > 0).sum() / (counts > 0).sum()), float(counts.max(1).sum() / counts.sum())


def _labels(audit: Audit) -> str:
    found, d = regime(audit), audit.divergence
    uniform = f"{d.imbalance:.2f} bits from uniform"
    mismatch = f"{d.mismatch:.2f} bits between two domains, {d.chance_mismatch:.2f} expected by chance"
    if found == "empty":
        return "Fewer than two classes have training samples, so there is nothing to learn yet."
    if found == "one domain":
        return (
            f"Only one domain has training samples, with a long tail ({uniform}). This is single-domain long-tailed "
            "recognition: BoDA's term is zero, and the default can borrow from other classes only."
        )
    if found == "balanced":
        same = f" and similar across domains ({mismatch})" if np.count_nonzero(d.samples) > 1 else ""
        return (
            f"The training labels are nearly balanced ({uniform}){same}: there is little imbalance to correct, so "
            "expect plain `erm` to be close to the default."
        )
    if found == "same tails":
        return (
            f"The domains have long tails ({uniform}), but similar ones ({mismatch}): a class that is rare in one is "
            "rare in all, so there is little to borrow from other domains. In the paper, ERM then aligns the domains "
            "while rare classes suffer, and `erm:retrain` gains 1.6 points (mean of five data sets)."
        )
    far = d.farthest() if np.count_nonzero(d.samples) > 2 else None
    most = f", most between {audit.domains[far[0]]} and {audit.domains[far[1]]}: {d.between[far]:.2f}" if far else ""
    digits = " and 9.5 points more on Digits-MLT with opposite tails" if d.mismatch > OPPOSITE else ""
    return (
        f"The domains differ in which classes are common and which are rare ({mismatch}{most}; the paper's data sets "
        "have 0.10 to 0.38). A pair that is rare here can borrow from its class elsewhere, which the default does. The "
        f"paper reports 80.2 % for `boda:retrain` against 77.6 % for `erm`, mean of five data sets{digits}."
    )


def _rare(audit: Audit) -> str:
    zero, few = len(audit.zero_pairs), len(audit.few_pairs)
    if not (zero or few) or regime(audit) == "empty":
        return ""
    none = f"{zero:,} {has(zero)} no training sample"
    some = f"{few:,} at most {audit.few}" if zero else f"{few:,} {has(few)} at most {audit.few} training samples"
    parts = " and ".join([none] * (zero > 0) + [some] * (few > 0))
    text = f"Of {audit.train.size:,} pairs, {parts}: expect the lowest and least certain accuracies there"
    if zero and np.count_nonzero(audit.divergence.samples) > 1:
        text += "; accuracy on a pair without samples depends on transfer from the other domains"
    return f"{text}."


def _scarce(audit: Audit) -> str:
    if "--tune" not in (recommend(audit) or ()):
        return ""
    return (
        f"The median pair has {_median(audit):.0f} training images: start with frozen pretrained features "
        "(`--tune none`)."
    )


def _median(audit: Audit) -> float:
    """Training samples in the median pair, empty pairs excluded."""
    return float(np.median(audit.train[audit.train > 0]))
