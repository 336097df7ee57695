"""Numbers and names in sentences and cells."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from crosstail.metrics import DEFAULT, FEW_TESTS, Metric, PairValues, find
from crosstail.training.result import RunResult

if TYPE_CHECKING:
    from crosstail.transfer import TransferabilityGraph


def of_the(metric: Metric) -> str:
    """Names the metric of an average or extreme, unless it is accuracy, which readers expect."""
    return "" if metric.name == DEFAULT else f" of the {metric.label}"


def several(n: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> several(1, "pair"), several(2000, "pair"), several(2, "class", "classes")
    ('1 pair', '2,000 pairs', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


VIEW_NAMES = {
    "pair_average": "pair average",
    "average": "accuracy",
    "worst_domain": "accuracy of the worst domain",
    "worst_pair": "accuracy of the worst pair",
}


def selected_on(on: str) -> str:
    """The name of a criterion in reports.

    >>> selected_on("pair_average"), selected_on("log_loss")
    ('pair average', 'log loss')
    """
    return VIEW_NAMES.get(on) or find(on).label


TRACKS = "domain unknown", "domain known"
TRACKS_NOTE = (
    "Domain unknown: predicted from the input alone. Domain known: the model is told the domain too, as with "
    "`crosstail predict --site`. It was selected with the domain unknown."
)
SAME_TRACKS = "Telling the model the domain (`crosstail predict --site`) changes no pair's accuracy."

KNOWN_PAIR_AVERAGE = f"{TRACKS[1].capitalize()}: the pair average if the model is told the domain."


def either(unknown: str, known: str) -> str:
    """Words on both tracks, once if they are the same.

    >>> either("day / cup", "day / cup"), either("day / cup", "day / mug"), either("worst", "")
    ('day / cup', 'unknown: day / cup; known: day / mug', 'unknown: worst')
    """
    if unknown == known:
        return unknown
    return "; ".join(f"{track}: {words}" for track, words in (("unknown", unknown), ("known", known)) if words)


def has(n: int) -> str:
    """The verb that agrees with a number."""
    return "has" if n == 1 else "have"


def sentence(text: str) -> str:
    """Capitalise, and end with a full stop.

    >>> sentence("2 files were left out"), sentence("they are broken.")
    ('2 files were left out.', 'They are broken.')
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def number(value: float | None, digits: int = 1, sign: str = "") -> str:
    """A number, or a dash for None and NaN.

    >>> number(1.26), number(1.26, 1, "+"), number(None)
    ('1.3', '+1.3', '–')
    """
    return "–" if value is None or value != value else f"{value:{sign}.{digits}f}"


def estimated(value: float | None, error: float | None) -> str:
    """A number and its standard error, if it has one, to the first digit of the error.

    >>> estimated(1.26, None), estimated(1.26, 0.0042), estimated(None, None)
    ('1.26', '1.260 ± 0.004', '–')
    """
    if not error or value is None or not error < math.inf:
        return number(value, 2)
    places = max(2, -math.floor(math.log10(error)))
    return f"{number(value, places)} ± {number(error, places)}"


def shown_statistics(graph: "TransferabilityGraph") -> list[str]:
    """α, β and γ, with their standard errors if they are estimated."""
    errors = graph.standard_errors or (None, None, None)
    return [estimated(value, error) for value, error in zip(graph.statistics, errors, strict=True)]


def percent(value: float | None) -> str:
    """A share as a percentage, or a dash.

    >>> percent(0.4567), percent(None)
    ('45.7', '–')
    """
    return number(None if value is None else 100 * value)


def probability(p: float) -> str:
    """A p-value, or a dash.

    >>> probability(0.0312), probability(2e-7), probability(float("nan"))
    ('0.031', '< 0.001', '–')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)


def interval(low: float, high: float, sign: str = "", digits: int = 1) -> str:
    """Both ends, or nothing where they are unknown or the same: equal answers do not show how certain a difference is.

    >>> interval(1.26, 2), interval(float("nan"), 2), interval(0, 0)
    ('1.3 to 2.0', '', '')
    """
    return "" if low != low or high - low < 1e-9 else f"{number(low, digits, sign)} to {number(high, digits, sign)}"


def both_ends(row: Any) -> str:
    """The interval of a row of a table, between its columns `low` and `high`."""
    return interval(row["low"], row["high"])


def shown(name: str, digits: int = 1, sign: str = "") -> Callable[[Any], str]:
    """What shows the number in a column of a row."""
    return lambda row: number(row.get(name), digits, sign)


def counts(name: str) -> Callable[[Any], str]:
    """What shows the count in a column of a row."""
    return lambda row: f"{row[name]:,}"


def worst_pair(accuracy: PairValues, domains: Sequence[str], classes: Sequence[str]) -> str:
    """The name of the worst pair, with a warning where it has few test samples; empty without any.

    >>> from crosstail.metrics import PairAccuracy
    >>> accuracy = PairAccuracy([[9, 0]], [[10, 2]])
    >>> worst_pair(accuracy, ["dslr"], ["cup", "mug"])
    'dslr / mug (2 test samples: mostly chance)'
    """
    if accuracy.worst_pair_index is None:
        return ""
    d, c = accuracy.worst_pair_index
    tests = accuracy.worst_pair_tests
    warning = f" ({several(tests, 'test sample')}: mostly chance)" if tests < FEW_TESTS else ""
    return f"{domains[d]} / {classes[c]}{warning}"


def tail_note(accuracy: PairValues) -> str:
    """What a percentile over pairs is, and how many of them have few test samples."""
    pairs, side = int((accuracy.totals > 0).sum()), "below" if accuracy.higher_is_better else "above"
    few = f"{accuracy.barely_tested:,} with fewer than {FEW_TESTS} test samples"
    return f"a tenth of {several(pairs, 'pair')} is {side} it; {few}"


def shot_sizes(many: int, few: int) -> dict[str, str]:
    """How many training samples the pairs of each shot group have."""
    sizes = {"many": f"over {many}", "medium": f"{few + 1} to {many}", "few": f"1 to {few}", "zero": "no"}
    return {shot: f"{size} training samples" for shot, size in sizes.items()}


def estimate_note(result: RunResult) -> str:
    """Which models the accuracy of a refit model was measured on; empty for others."""
    spec = result.spec
    if spec.stop_at is None:
        return ""
    trained = "This model was trained on every sample, so none is left to test it on"
    if result.estimate is None:
        return f"{trained}, and its accuracy is unknown: crosstail fit --refit estimates it."
    measured = "one model, trained and tested on parts of the data"
    if spec.folds is not None:
        measured = (
            f"{spec.folds} models trained on parts of the data (cross-validation): every sample was tested once, by "
            "the model that had not seen it"
        )
    elif spec.unseen_domains:
        measured = f"{len(result.domains)} models, each tested on the domain that it was not trained on"
    return f"{trained}. The accuracy comes from {measured}."


def listing(names: Sequence[str], most: int = 10, joint: str = ", ") -> str:
    """The first names, and how many more there are.

    >>> listing(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return joint.join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def duration(seconds: float) -> str:
    """A time in a suitable unit.

    >>> duration(4.2), duration(250), duration(9000)
    ('4.2 s', '4 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def file_size(size: float) -> str:
    """A number of bytes in a suitable unit.

    >>> file_size(5_400), file_size(12_000_000), file_size(3.1e9), file_size(2.5e12)
    ('5 kB', '12 MB', '3.1 GB', '2,500 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            value = size / factor
            return f"{value:,.0f} {unit}" if value >= 99.5 else f"{value:.2g} {unit}"
    return f"{size / 1e3:.0f} kB"
