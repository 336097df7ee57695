"""Selection as in other benchmarks: trial and step together, from the evaluations of all runs. One file each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crosstail import discovery

if TYPE_CHECKING:
    from crosstail.training.result import SplitAccuracy
    from crosstail.training.spec import RunSpec

PACKAGE = "crosstail.sweeps.rules"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a file in this package declares as RULE; the first line of its docstring is the help."""

    label: str
    name: str = ""  # as `find` knows it
    value: "Callable[[SplitAccuracy], float | None]"  # what is selected on, from the accuracies of validation samples
    oracle: bool = False  # whether from the last ones on held-out samples of the unseen domain
    left_out: bool = False  # whether as the mean over runs that leave out one more domain, each validated on it

    def check(self, spec: "RunSpec") -> None:
        """Refuse a rule about unseen domains where there are none."""
        if (self.oracle or self.left_out) and not spec.unseen_domains:
            raise ValueError(f"selecting by {self.label} needs unseen domains: add --protocol dg")


def find(name: str) -> Rule:
    """A rule by its name, whatever its case."""
    name = discovery.known(PACKAGE, name, "rule")
    return replace(discovery.find(PACKAGE, name, "rule").RULE, name=name)
