"""What a race ends with: a leaderboard, and what became of the other methods."""

from dataclasses import dataclass, field

import msgspec

from crosstail.metrics import Answers, Difference
from crosstail.sweeps.cost import MethodCost
from crosstail.sweeps.index import Judged
from crosstail.sweeps.plan import Hparams


class FailedRun(msgspec.Struct, frozen=True):
    """A run without a result."""

    method: str
    run: str  # such as "trial 3"
    error: str  # its last line


class StoppedMethod(msgspec.Struct, frozen=True):
    """A method that was not among the better half of a round."""

    method: str
    trials: int
    validation: float  # of its best trial


@dataclass(frozen=True, kw_only=True)
class BestTrial:
    """A method's best trial on validation, with several seeds."""

    method: str
    family: str
    cost: MethodCost
    trial: int
    hparams: Hparams
    selected_on: str = "pair_average"
    runs: dict[int, list[str]]  # keys of the runs, by seed: one, or one for each fold
    seconds: float  # mean over the method's runs


@dataclass(frozen=True, kw_only=True)
class Entrant(BestTrial):
    """A method before the comparison: what it was selected by on validation, and its answers there and on test."""

    validation: dict[int, Judged]  # by seed, as the answers
    validated: dict[int, Answers | None]
    answers: dict[int, Answers]


@dataclass(frozen=True, kw_only=True)
class Standing(BestTrial):
    """A line of the leaderboard: means over the seeds; the interval is that of these models on other test samples."""

    validation: float
    test: float
    low: float
    high: float
    deviation: float | None  # of the test accuracy over the seeds
    worst_domain: float
    known: float | None = None  # test accuracy with the domain known, if the method uses it
    lead: Difference | None  # of the first over this one, on the test set; None for the first
    candidate: bool = True  # not behind the first on validation by more than the noise
    level: bool = field(init=False)  # the first is not ahead by more than the noise

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", not (self.lead and self.lead.estimate > 0 and self.lead.sure))


class RaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """A race that has ended: the content of race.json."""

    recommendation: str
    use: str  # the recommended method
    dataset: str
    backbone: str
    tune: str
    steps: int
    batch_size: int
    trials: int
    seeds: int
    folds: int | None = None
    samples: int  # of the test set, with folds of all of them
    validation_samples: int
    pairs: tuple[int, int]  # with samples in the validation and the test set
    complete: bool  # every method has its selected trial with every seed
    leaderboard: list[Standing]  # of the finalists
    stopped: list[StoppedMethod] = []
    left_out: dict[str, str]  # the reason, by method
    failed: list[FailedRun]
    notes: list[str] = []
    next_text: str = ""
    next: str = ""  # the command that follows
