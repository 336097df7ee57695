"""Which method to use after a race, in words."""

from collections.abc import Sequence

from crosstail.metrics import find
from crosstail.sweeps.race_result import Standing

BASELINE = "erm"


def winner(board: Sequence[Standing]) -> Standing:
    """The cheapest of the methods that are not behind the first on validation by more than the noise."""
    return min([row for row in board if row.candidate], key=lambda row: row.cost)


def recommendation(board: Sequence[Standing], samples: int) -> str:
    """Which method to use and why, by `samples` of validation, and what the test set says about it."""
    (first, *others), use = board, winner(board)
    equal = sum(row.validation == first.validation for row in others)
    shared = f", shared with {equal} other{'s' * (equal > 1)}" if equal else ""
    best = f"{find(first.selected_on).shown(first.validation)}{shared}"
    if not others:
        alone = f"{first.method} is best on validation ({best}), but no other method finished."
        return f"{alone} Race it against others to see if it is worth its cost."
    near = sum(row.candidate for row in others)
    if use is not first:
        why = f"it is the cheapest of the {near + 1} methods that {samples:,} validation samples cannot separate"
        why += f", of which {first.method} is best ({best})"
    else:
        why = f"it is best on validation ({best}), "
        why += "and no method that is within its noise is cheaper" if near else "by more than the noise"
    leads = [_lead(others[0], f"the second, {others[0].method}") if use is first else _lead(use, "it")]
    leads += [_lead(row, BASELINE) for row in others if row.method == BASELINE and row is not use]
    if use is first and others[0].method == BASELINE:
        leads = leads[:1]
    ends = f"95 % interval {100 * use.low:.1f} to {100 * use.high:.1f}"
    test = f"On the test set it has {100 * use.test:.1f} % ({ends})"
    return f"Use {use.method}: {why}. {test}; {'it' if use is first else first.method} is {' and '.join(leads)}."


def _lead(row: Standing, other: str) -> str:
    lead = row.lead
    if lead is None:
        return f"not comparable with {other}"
    if lead.same:
        return f"right on the same samples as {other}"
    points = f"{100 * abs(lead.estimate):.1f}"
    side = "level with" if points == "0.0" else f"{points} points {'ahead of' if lead.estimate > 0 else 'behind'}"
    noise = "beyond" if lead.sure else "within"
    return f"{side} {other} (95 % interval {100 * lead.low:+z.1f} to {100 * lead.high:+z.1f}, {noise} the noise)"
