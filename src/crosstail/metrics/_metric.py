"""What a metric is: its name in reports, how it is computed, and which way is better."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from crosstail import discovery
from crosstail.metrics._views import View

if TYPE_CHECKING:
    from crosstail.metrics._answers import Answers
    from crosstail.metrics._values import PairValues, SampleValues

PACKAGE = "crosstail.metrics"
DEFAULT = "accuracy"
VIEWS: tuple[str, ...] = get_args(View)
TIE = 1e-4

Needs = Literal["predicted", "true", "log_p"]
"""What of the answers a metric needs: the classes, the log probability of the true one, or all log probabilities."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of every pair; `METRIC` of a file in this package, whose name is the metric's on the command line."""

    label: str
    name: str = ""  # as `find` knows it
    of: "Callable[[Answers], PairValues]"
    needs: Needs = "log_p"
    higher_is_better: bool = True
    most: float = 1.0
    """Largest possible value; unless it is 1, the metric is not a share and not shown in %."""
    by_sample: "Callable[[Answers], SampleValues] | None" = None
    """The same with the influence of each sample, to compare methods, if `of` does not give it."""
    frequent: bool = False
    """Whether averages weigh pairs by how frequent they are, so that the mean over pairs is that of all samples."""
    prepared: "Callable[[Answers, Answers], Answers] | None" = None
    """What the metric needs beside: samples with what is fitted on validation samples, the second argument."""
    selected: "Callable[[Answers], float | None] | None" = None
    """What to select on, if it is not the mean over pairs."""

    @cached_property
    def sign(self) -> int:
        """1 if higher is better, −1 if lower is."""
        return 1 if self.higher_is_better else -1

    @cached_property
    def share(self) -> bool:
        """Whether it is shown in %."""
        return self.most == 1

    @property
    def scale(self) -> int:
        """Factor by which values are multiplied for display."""
        return 100 if self.share else 1

    @property
    def digits(self) -> int:
        """Decimals that are shown: one in %, else three."""
        return 1 if self.share else 3

    @property
    def unit(self) -> str:
        """Unit of a value: % if it is a share."""
        return " %" if self.share else ""

    @property
    def points(self) -> str:
        """Unit of a difference between two values: points if they are shares."""
        return " points" if self.share else ""

    def shown(self, value: float | None, unit: bool = True) -> str:
        """A value as text, with its unit if it is a share.

        >>> find("accuracy").shown(0.8123), find("log_loss").shown(0.8123), find("accuracy").shown(0.5, unit=False)
        ('81.2 %', '0.812', '50.0')
        """
        return "–" if value is None else f"{self.scale * value:.{self.digits}f}{self.unit if unit else ''}"

    def sampled(self, answers: "Answers") -> "SampleValues":
        """The metric with the influence of each sample on it."""
        return self.by_sample(answers) if self.by_sample else self.values(answers)  # type: ignore[return-value]

    def values(self, answers: "Answers") -> "PairValues":
        found = self.of(answers)
        if self.higher_is_better and self.share:
            return found
        return replace(found, higher_is_better=self.higher_is_better, most=self.most)  # type: ignore[type-var]


def names() -> list[str]:
    """The metrics in this package, accuracy first."""
    found = discovery.names(PACKAGE)
    return sorted(found, key=lambda name: (name != DEFAULT, found.index(name)))


def find(name: str) -> Metric:
    """A metric by name, in a file that ends in .py, or by what is selected on: a view of accuracy is an accuracy.

    >>> find("auroc").label, find("worst_pair").label
    ('AUROC', 'accuracy')
    """
    name = DEFAULT if name in VIEWS else name
    return _in_file(name, discovery.require_file(Path(name))) if name.endswith(".py") else _named(_declared(name), name)


def _declared(name: str) -> Metric:
    found: Metric = discovery.declared(PACKAGE, name, "metric", "METRIC", Metric)
    return found


@cache
def _in_file(name: str, content: bytes) -> Metric:
    """A user's metric, whose file is run only to compute values: pages read what it is without being trusted to."""
    given = discovery.arguments(Path(name), "METRIC", "Metric")
    facts: dict[str, Any] = {}
    for argument in ("label", "needs", "higher_is_better", "most", "frequent"):
        try:
            facts |= {argument: ast.literal_eval(given[argument])} if argument in given else {}
        except ValueError:
            raise ValueError(f"{name}: {argument} of METRIC is computed, expected a plain value") from None
    for function in ("of", "by_sample", "prepared", "selected"):
        if function in given:
            facts[function] = lambda *said, own=function: getattr(_declared(name), own)(*(one.sealed() for one in said))
    if missing := {"label", "of"} - facts.keys():
        raise ValueError(f"{name}: METRIC lacks {min(missing)}")
    return Metric(name=name, **facts)


@cache
def _named(found: Metric, name: str) -> Metric:
    return replace(found, name=name)


def criteria() -> list[str]:
    """What can be selected on: views of accuracy over pairs and domains, and the other metrics."""
    return [*VIEWS, *names()[1:]]


def score(value: float | None, pair_average: float | None, on: str) -> float | None:
    """Score to select by, such that larger is better for every metric; None without samples.

    The worst domain or pair is often the same at many evaluations, such as 0 for a pair that is never recognised, so
    a small share of the pair average decides between them.
    """
    if value is None:
        return None
    return find(on).sign * value + (TIE * (pair_average or 0.0) if on in ("worst_domain", "worst_pair") else 0.0)


def value_on(answers: "Answers", on: str) -> float | None:
    """What is selected on, as a view of accuracy or another metric has it; None without samples."""
    if on in VIEWS:
        found: float | None = getattr(answers.value(), on)
        return found
    metric = find(on)
    return metric.selected(answers) if metric.selected else metric.values(answers).pair_average
