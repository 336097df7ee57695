"""Rules that choose α, the weight of the tuned stage, from what validation samples say of each."""

from collections.abc import Callable, Mapping
from typing import Any

from crosstail.training.tuned_share import EMPTY

Said = Mapping[float, Mapping[str, Any]]
"""Of every α: figures, and `over`, the paired differences from α = 0."""

Rule = Callable[[Said], float]


def always(alpha: float) -> Rule:
    """The same α, whatever validation says."""
    return lambda said: alpha


def best(figure: str, sign: int) -> Rule:
    """The α with the best figure; of several, the smallest."""
    return lambda said: max(said, key=lambda a: (sign * said[a][figure], -a))


def tested(metric: str, figure: str, sign: int, level: float) -> Rule:
    """The best α of those that are better than α = 0 by a paired test at this level; none: α = 0."""

    def choose(said: Said) -> float:
        sure = {a: of for a, of in said.items() if a == 0 or better(of, metric, sign, level)}
        return best(figure, sign)(sure)

    return choose


def halfway(metric: str, sign: int, level: float) -> Rule:
    """Half of the way, if that is better than none by a paired test: one test, not the best of several."""
    return lambda said: 0.5 if better(said[0.5], metric, sign, level) else 0.0


def unbeaten(level: float) -> Rule:
    """The smallest α that the one with the least log loss does not beat in a paired test."""
    return lambda said: min(a for a, of in said.items() if of["beaten"] >= level)


def both(level: float) -> Rule:
    """The smallest log loss of those that are better by a paired test, and in accuracy not below α = 0."""

    def choose(said: Said) -> float:
        fine = {a: of for a, of in said.items() if of["pairs"] >= said[0.0]["pairs"]}
        return tested("log_loss", "loss", -1, level)(fine)

    return choose


def unless_empty(rule: Rule) -> Rule:
    """A rule, but α = 0 where validation samples cannot say what happens to many pairs, as these have no samples."""
    return lambda said: 0.0 if said[0.0]["empty"] > EMPTY else rule(said)


def better(of: Mapping[str, Any], metric: str, sign: int, level: float) -> bool:
    """Whether a paired test says that an α is better than 0."""
    found = of["over"][metric]
    return found is not None and sign * found[0] > 0 and found[3] < level


RULES: dict[str, Rule] = {
    **{f"always {share}": always(a) for share, a in (("¼", 0.25), ("½", 0.5), ("¾", 0.75), ("1", 1.0))},
    "accuracy": best("pairs", 1),
    "log loss": best("loss", -1),
    **{f"accuracy, {100 * level:.0f} %": tested("accuracy", "pairs", 1, level) for level in (0.05, 0.2)},
    **{f"log loss, {100 * level:.0f} %": tested("log_loss", "loss", -1, level) for level in (0.01, 0.05, 0.2)},
    "½ by log loss, 5 %": halfway("log_loss", -1, 0.05),
    "½ by accuracy, 5 %": halfway("accuracy", 1, 0.05),
    "both, 5 %": both(0.05),
    **{f"unbeaten, {100 * level:.0f} %": unbeaten(level) for level in (0.01, 0.05, 0.2)},
    **{f"unbeaten, {100 * level:.0f} %, few empty": unless_empty(unbeaten(level)) for level in (0.05, 0.2)},
    "accuracy, few empty": unless_empty(best("pairs", 1)),
    "always ½, few empty": unless_empty(always(0.5)),
    "½ by log loss, 5 %, few empty": unless_empty(halfway("log_loss", -1, 0.05)),
    "log loss, few empty": unless_empty(best("loss", -1)),
}
