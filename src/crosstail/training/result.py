"""The records of a run: one per evaluation, and a result at the end."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from crosstail import __version__
from crosstail.metrics import VIEWS, Answers, PairAccuracy, group_squares, score, value_on
from crosstail.training.data_facts import DataFacts
from crosstail.training.spec import RunSpec

if TYPE_CHECKING:  # importing torch takes seconds, and reading results needs none of it
    from crosstail.data import DomainDataset
    from crosstail.training.held_out import HeldOut

PROBABILITIES = "probabilities.npz"  # of a run's held-out samples, if it has kept them

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1 + 1e-9)]
Table = list[list[Number]]  # one number for each pair, by domain
Squares = list[list[Annotated[int, msgspec.Meta(ge=0, le=2**62)]]]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Names = Annotated[list[str], msgspec.Meta(min_length=1)]


class SplitAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracies on one split, between 0 and 1; None for an empty group."""

    average: Share | None
    worst_domain: Share | None
    pair_average: Share | None
    worst_pair: Share | None
    tenth_percentile: Share | None = None  # over the pairs with test samples
    shots: dict[str, Share | None] = {}
    hits: Table
    totals: Table
    squares: Squares | msgspec.UnsetType = msgspec.UNSET
    """Σ n_g² over the groups of a pair, where samples come in groups: intervals count n² / Σ n_g² samples."""
    macro_f1: float | msgspec.UnsetType | None = msgspec.UNSET
    """Over all domains together; this and the next are missing where only hits and totals are known."""
    log_loss: float | msgspec.UnsetType | None = msgspec.UNSET
    others: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET
    """What the run is selected on, if it is none of the above, and on validation the accuracy as samples come."""

    def __post_init__(self) -> None:
        self.pairs()  # which refuses impossible ones

    @classmethod
    def of(cls, accuracy: PairAccuracy, counts: NDArray[np.int64] | None = None, **shots: int) -> "SplitAccuracy":
        """From hits and totals, with the shots where the training counts are given."""
        return cls(**accuracy.to_json(counts, **shots))

    @classmethod
    def of_answers(cls, answers: Answers, on: str, kept: Answers | None = None) -> "SplitAccuracy":
        """From a model's answers, with what is selected `on`, from the `kept` ones if only these have what it needs."""
        # Without groups: their squares are the same at every evaluation, and the result has them.
        plain = PairAccuracy.of(replace(answers, group=None))
        found, more = cls.of(plain), {name: value_on(answers, name) for name in ("macro_f1", "log_loss")}
        others = {} if hasattr(found, on) else {"others": {on: value_on(answers if kept is None else kept, on)}}
        return msgspec.structs.replace(found, **more, **others)

    def value(self, on: str) -> float | None:
        """What is selected `on`; None without samples."""
        if on in VIEWS:
            found: float | None = getattr(self, on)
            return found
        known = self.more()
        if on not in known:
            raise ValueError(f"an evaluation in records.jsonl lacks {on}: choose another --out")
        return known[on]

    def more(self) -> dict[str, float | None]:
        """What can be selected on beside views of the accuracy, as far as it was recorded."""
        recorded = {"macro_f1": self.macro_f1, "log_loss": self.log_loss}
        return {name: value for name, value in recorded.items() if value is not msgspec.UNSET} | (self.others or {})

    def pairs(self) -> PairAccuracy:
        """Hits, totals and squares (D, C) with the metrics on them."""
        squares = None if self.squares is msgspec.UNSET else np.asarray(self.squares)
        return PairAccuracy(np.asarray(self.hits), np.asarray(self.totals), squares)


class Transferability(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """α, β, γ of the training features; None where no two pairs are comparable."""

    alpha: float | None
    beta: float | None
    gamma: float | None
    errors: dict[str, float | None] = {}  # standard errors, if estimated because there are too many pairs


class Trace(Transferability, frozen=True, kw_only=True):
    """The graph at one evaluation: its statistics, and a 2-D point for every pair with training samples."""

    points: list[tuple[float, float]]


class Averaged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The accuracies of the averaged weights at one evaluation."""

    validation: SplitAccuracy
    test: SplitAccuracy
    steps: tuple[Number, Number] | None = None  # the first and the last that SWAD averages


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of records.jsonl; `losses` are means since the evaluation before."""

    stage: Literal[1, 2]
    step: Number
    seconds: Seconds
    losses: dict[str, float]
    validation: SplitAccuracy
    test: SplitAccuracy
    averaged: Averaged | None = None
    trace: Trace | None = None
    unseen: SplitAccuracy | None = None
    """Of the last weights on samples of the unseen domain that are not tested on: for comparison only."""


class RawWeights(msgspec.Struct, frozen=True, kw_only=True):
    """With averaged weights: the accuracies of the raw ones at their own best evaluation."""

    selected_step: int
    validation: SplitAccuracy
    test: SplitAccuracy


class Tried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A share of the tuned weights, on validation, with the 95 % interval of its log loss minus that of the first.

    The log loss is at the best temperature of each share.
    """

    share: Share
    pair_average: Share
    log_loss: float
    low: float | None = None
    high: float | None = None


class Tuned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The share of the tuned weights in their average with the pretrained ones, and those that it was chosen from."""

    share: Share
    why: str
    tried: list[Tried] = []


class KnownDomain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The accuracies of the final model where it is told the domain of every sample."""

    validation: SplitAccuracy
    test: SplitAccuracy
    estimate: SplitAccuracy | None = None


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """result.json."""

    spec: RunSpec
    versions: dict[str, str]
    selected_step: Number
    selected_steps: Annotated[list[Number], msgspec.Meta(min_length=1, max_length=2)]
    """Selected step of each stage; the last is `selected_step`."""
    seconds: Seconds
    domains: Names
    classes: Names
    counts: Table
    validation: SplitAccuracy
    test: SplitAccuracy
    transferability: Transferability
    hparams: dict[str, Any]
    """All hyperparameters, because a later version may have other defaults."""
    input_shape: Annotated[list[Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]], msgspec.Meta(min_length=1)]
    weights: str | None  # checksum of the frozen backbone's weights
    data: DataFacts
    notes: list[str] = []
    """About the training, such as a phase that was never reached; those about the data are in `data`."""
    raw: RawWeights | None = None
    estimate: SplitAccuracy | None = None
    """After --refit: the pooled test accuracy of the runs before it, because no sample is left to test the model on."""
    thresholds: tuple[int, int] | None = None
    """The `shots` of a data set in a user's file, whose sheet may be gone later."""
    tuned: Tuned | None = None
    """With `--tune last`."""
    critical: dict[str, Share | None] = {}
    """Classes that must not be missed, whose recall pages show first, with the recall that each has to reach."""
    known: KnownDomain | None = None
    """If the model uses the domain and was trained on several. All other accuracies are without knowing the domain."""

    def __post_init__(self) -> None:
        """Refuse tables that are not of these domains and classes."""
        for names in (self.domains, self.classes):
            if len(set(names)) < len(names):
                raise ValueError(f"the name {max(names, key=names.count)!r} occurs twice, expected one of each")
        parts = [self, *(part for part in (self.raw, self.known) if part)]
        splits = [split for part in parts for split in (part.validation, part.test)]
        splits += [part.estimate for part in (self, self.known) if part and part.estimate]
        wanted = [len(self.classes)] * len(self.domains)
        for table in (self.counts, *(split.totals for split in splits)):
            if list(map(len, table)) != wanted:
                expected = f"{len(self.domains)} domains by {len(self.classes)} classes"
                raise ValueError(f"contains a table that is not {expected}")

    @property
    def shots(self) -> tuple[int, int]:
        """The training counts above which a pair is many-shot, and up to which it is few-shot."""
        from crosstail.data import shot_thresholds

        return self.thresholds or shot_thresholds(self.spec.dataset)

    @property
    def answered(self) -> dict[str, Any]:
        """What the answers for any of its samples have in common."""
        names = {"domains": self.domains, "classes": self.classes, "shots": self.shots}
        return {**names, "counts": np.array(self.counts, np.int64)}

    def tested(self, known: bool = False) -> SplitAccuracy:
        """The test accuracy, or its estimate; with the domain `known`, the same as without if the model ignores it."""
        of = self.known if known and self.known else self
        return of.estimate or of.test


def make_result(
    spec: RunSpec,
    dataset: "DomainDataset",
    records: Sequence[Evaluation],
    *,
    selected_steps: list[int],
    informed: "HeldOut | None",
    others: Mapping[str, float | None],
    **facts: Any,
) -> RunResult:
    """The result of a run whose stages selected these steps; `facts` are further fields, stored unchanged.

    `informed` are the held-out samples, answered with the domain told too, `others` further metrics on validation.
    """
    from crosstail.data import shot_thresholds

    stage, step = len(selected_steps), selected_steps[-1]
    own = [record for record in records if record.stage == stage]
    chosen = next((record for record in own if record.step == step), None)
    if chosen is None:
        raise ValueError(f"records.jsonl lacks step {step} of stage {stage}: remove the folder and repeat the command")
    final, counts = chosen.averaged or chosen, dataset.counts("train")
    many, few = shot_thresholds(spec.dataset)

    def accuracy(recorded: SplitAccuracy, split: str) -> SplitAccuracy:
        pairs, rows = recorded.pairs(), dataset.rows(split)
        if dataset.group is not None:  # records lack squares, which are the same at every evaluation
            squares = group_squares(dataset.y[rows], dataset.domain[rows], dataset.group[rows], counts.shape)
            pairs = PairAccuracy(pairs.hits, pairs.totals, squares)
        found = SplitAccuracy.of(pairs, counts, many=many, few=few)
        kept = {name: getattr(recorded, name) for name in ("macro_f1", "log_loss", "others")}
        if recorded is final.validation:
            kept["others"] = {**others, **(recorded.others or {})} or msgspec.UNSET
        return msgspec.structs.replace(found, **kept)

    def accuracies(record: Evaluation | Averaged) -> dict[str, Any]:
        return {"validation": accuracy(record.validation, "val"), "test": accuracy(record.test, "test")}

    def told(answers: Answers) -> SplitAccuracy:
        return SplitAccuracy.of(PairAccuracy.of(answers.told), counts, many=many, few=few)

    raw = known = None
    if informed is not None:
        known = KnownDomain(validation=told(informed.validation), test=told(informed.test))
    if chosen.averaged:
        best = best_on_validation(own, spec.selected_on)
        raw = RawWeights(selected_step=best.step, **accuracies(best))
    return RunResult(
        spec=spec,
        versions={"crosstail": __version__, "torch": version("torch"), "Python": platform.python_version()},
        selected_step=step,
        selected_steps=selected_steps,
        seconds=round(sum({record.stage: record.seconds for record in records}.values()), 3),
        domains=list(dataset.domains),
        classes=list(dataset.classes),
        counts=counts.tolist(),
        **accuracies(final),
        raw=raw,
        known=known,
        thresholds=(many, few) if ".py" in spec.dataset else None,
        **facts,
    )


def pooled(results: Sequence[RunResult], known: bool = False) -> PairAccuracy:
    """Test hits and totals of every pair, summed over runs that were tested on different samples."""
    return PairAccuracy.pooled([result.tested(known).pairs() for result in results])


def pooled_accuracy(results: Sequence[RunResult], counts: NDArray[np.int64], known: bool = False) -> SplitAccuracy:
    """The same with all metrics, and with shots by these training counts unless every tested domain was unseen."""
    many, few = results[0].shots
    shown = None if results[0].spec.unseen_domains else counts
    return SplitAccuracy.of(pooled(results, known), shown, many=many, few=few)


def mean_counts(results: Sequence[RunResult]) -> NDArray[np.int64]:
    """Training samples per pair, averaged over runs and rounded."""
    return np.rint(np.mean([result.counts for result in results], axis=0)).astype(np.int64)


def selection_score(of: SplitAccuracy, on: str) -> float | None:
    """Score to select by, such that larger is better; None without samples."""
    return score(of.value(on), of.pair_average, on)


def best_on_validation(records: Sequence[Evaluation], on: str) -> Evaluation:
    """The first of the best on validation (raw weights), or the last one where there are no validation samples."""
    scores = [(selection_score(record.validation, on), record) for record in records]
    known = [(found, record) for found, record in scores if found is not None]
    return max(known, key=lambda each: each[0], default=(0.0, records[-1]))[1]
