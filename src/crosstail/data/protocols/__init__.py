"""Protocols: which samples are trained on, selected on and tested on. One file each, found by its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from crosstail import discovery

if TYPE_CHECKING:  # a spec is checked before torch is imported, which takes seconds
    from crosstail.data.benchmarks._sheet import DataSheet
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.spec import DataSpec

PACKAGE = "crosstail.data.protocols"
S = TypeVar("S", bound="DataSpec")


def by_sheet(sheet: "DataSheet") -> dict[str, int]:
    """The steps and the batch size of the paper."""
    return {"steps": sheet.steps, "batch_size": sheet.batch_size}


def evenly(steps: int, number: int) -> set[int]:
    """Before the first step, after the last one, and evenly in between."""
    return {round(steps * k / number) for k in range(number + 1)}


def by_hundreds(steps: int, number: int) -> set[int]:
    """After the first step, every so many hundred steps later, and after the last one.

    >>> sorted(by_hundreds(5001, 17))[:3], len(by_hundreds(5001, 17))
    ([1, 301, 601], 18)
    """
    return {*range(1, steps, 100 * -(-(steps - 1) // (100 * number)) or 1), steps}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a file in this package declares as PROTOCOL; the first line of its docstring is the help."""

    parts: "Callable[[Any, DomainDataset], list[Any]]"  # what a spec without `unseen` and `fold` stands for
    split: "Callable[[DomainDataset, Any], DomainDataset]"  # the samples of one part: train, val, test, or in none
    folds: bool = False  # whether --folds divides the data
    unseen_domains: bool = False  # whether each run is tested on a domain that it was not trained on: without shots
    seeded: bool = False  # whether the split depends on the run's seed, too, so that each has a search of its own
    selects_on: str = "pair_average"  # the validation metric that evaluations, trials and methods are selected on
    spread: Literal["sd", "se"] = "sd"  # what follows ± over seeds: standard deviation, or standard error of the mean
    last_of_ties: bool = False  # which of several trials that are equal on validation is selected, instead of the first
    defaults: "Callable[[DataSheet], dict[str, int]]" = by_sheet  # steps, batch_size and evaluations on a benchmark
    due: Callable[[int, int], set[int]] = evenly  # steps before which to evaluate, of a number of steps and evaluations
    replacement: bool = False  # whether the samples of a batch are drawn independently, instead of in epochs
    whole_view: bool = False  # whether images are evaluated squeezed into a square, instead of their central square
    by_share: bool = False  # whether the accuracy of a domain is the share of its test samples, not of its classes


def find(name: str) -> Protocol:
    """A protocol by its name, whatever its case."""
    return cast(Protocol, discovery.find(PACKAGE, name, "protocol").PROTOCOL)


def summary(name: str) -> str:
    """What a protocol does, from the first line of its file, with a small letter and without a full stop."""
    first = discovery.docstring(PACKAGE, name).partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def parts(spec: S, source: "DomainDataset") -> list[S]:
    """The specs that one stands for: itself, or one for each fold or unseen domain."""
    if spec.unseen is not None:
        return [replace(spec, unseen=discovery.same_name(spec.unseen, source.domains) or spec.unseen)]
    return [spec] if spec.part else find(spec.protocol).parts(spec, source)


def leave_out_two(spec: S, other: str, domains: "Sequence[str]") -> S:
    """The spec that leaves out its unseen domain and another one: the same one for both, validated on the second."""
    first, second = sorted((str(spec.unseen), other), key=list(domains).index)
    return replace(spec, unseen=first, left_out=second)


def split(dataset: "DomainDataset", spec: "DataSpec") -> "DomainDataset":
    """The samples of a resolved spec: split by its protocol, then thinned out by its label profiles."""
    import numpy as np

    from crosstail.data.splits.gaps import with_gaps_noted
    from crosstail.data.splits.imbalanced_dg import setting_of
    from crosstail.data.splits.label_profiles import apply_labels

    if spec.whole:
        dataset = replace(dataset, split=np.full(len(dataset), "train"))
    else:
        dataset = find(spec.protocol).split(dataset, spec)
    if setting_of(spec) is None:
        dataset = apply_labels(dataset, profiles(spec), spec.data_seed)
    return with_gaps_noted(dataset, spec.unseen, folds=spec.folds is not None)


def profiles(spec: "DataSpec") -> Sequence[str] | None:
    """The label profiles that a spec names, or of its benchmark, except if domains are unseen, as in DomainBed."""
    from crosstail.data.benchmarks._load import sheet_of

    sheet = sheet_of(spec.dataset) if spec.labels is None and not spec.unseen_domains else None
    return sheet.labels if sheet else spec.labels
