"""Which method to use after a race, in words."""

from collections.abc import Sequence

from crosstail.metrics import find
from crosstail.sweeps.race_result import Standing

BASELINE = "erm"


def recommendation(board: Sequence[Standing], samples: int) -> str:
    """Two sentences: which method is best on validation, how certain that is, and the cheapest that may equal it."""
    first, *others = board
    equal = sum(row.validation == first.validation for row in others)
    shared = f", shared with {equal} other{'s' * (equal > 1)}" if equal else ""
    best = f"{first.method} is best on validation ({find(first.selected_on).shown(first.validation)}{shared})"
    if not others:
        return f"{best}, but no other method finished. Race it against others to see if it is worth its cost."
    leads = [_lead(others[0], f"the second, {others[0].method}")]
    leads += [_lead(row, BASELINE) for row in others[1:] if row.method == BASELINE]
    level = [row for row in others if row.level]
    cheapest = start_with(board)
    seeds = f" and {len(first.runs)} seeds" if len(first.runs) > 1 else ""
    noise = f"behind it by more than the noise of {samples:,} test samples{seeds}"
    some = f"{len(level)} of the {len(others)} others {'is' if len(level) == 1 else 'are'} not {noise}"
    if len(level) == len(others):
        some = f"None of the others is {noise}"
    if not level:
        advice = f"Every other method is {noise}: use {first.method}."
    elif cheapest is first:
        advice = f"{some}, and none of these is cheaper: use {first.method}."
    else:
        advice = f"{some}: start with the cheapest, {cheapest.method}."
    return f"{best}; on the test set it is {' and '.join(leads)}. {advice}"


def start_with(board: Sequence[Standing]) -> "Standing":
    """The cheapest of the methods that the first is not ahead of by more than the noise."""
    return min([row for row in board if row.level], key=lambda row: row.cost)


def _lead(row: "Standing", other: str) -> str:
    lead = row.lead
    if lead is None:
        return f"not comparable with {other}"
    points = f"{100 * abs(lead.estimate):.1f}"
    side = "level with" if points == "0.0" else f"{points} points {'ahead of' if lead.estimate > 0 else 'behind'}"
    noise = "beyond" if lead.sure else "within"
    return f"{side} {other} (95 % interval {100 * lead.low:+z.1f} to {100 * lead.high:+z.1f}, {noise} the noise)"
