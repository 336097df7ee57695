"""How far to go from pretrained to tuned weights: WiSE-FT (Wortsman et al., 2022), with α chosen on held-out samples.

θ(α) = (1 − α) θ_pretrained + α θ_tuned
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor, nn

from crosstail.algorithms import Algorithm
from crosstail.metrics import Answered, Answers, Difference, Models, difference, value_on
from crosstail.metrics._calibration import balanced_weights
from crosstail.metrics._temperature import fit_sharpness
from crosstail.training.result import Tried, Tuned
from crosstail.training.spec import RunSpec

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
LOSS = "log_loss"
EMPTY = 0.2  # share of pairs without training samples above which validation does not choose

State = dict[str, Tensor]


def between(first: State, last: State, share: float) -> State:
    """Weights between two states of a network; what is not a floating-point number is of the first."""
    return {name: torch.lerp(of, last[name], share) if of.is_floating_point() else of for name, of in first.items()}


class TunedPart:
    """The part of an algorithm's network that is tuned, with weights anywhere between pretrained and tuned ones."""

    def __init__(self, spec: RunSpec, algorithm: Algorithm) -> None:
        """Of an untrained algorithm, whose weights are the pretrained ones."""
        backbone = algorithm.backbone
        self.given, self.alone = spec.tuned_share, spec.head == "linear"
        self.part: nn.Module = backbone if self.alone else backbone.layers.get_submodule("0")  # with a head behind it
        self.pretrained = _copied(self.part)
        self.tuned: State = {}

    def trained(self) -> Tuned:
        """Take the present weights as the tuned ones, and set them to the share that was given, if one was."""
        self.tuned = _copied(self.part)
        share = 1.0 if self.given is None else self.given
        self.move(share)
        return Tuned(share=share, why="as given" if self.given is not None else "the second stage is not fitted")

    def move(self, share: float) -> None:
        """Set the weights to an average of pretrained and tuned ones."""
        self.part.load_state_dict(between(self.pretrained, self.tuned, share))

    def shares(self, samples: int) -> tuple[float, ...]:
        """Those to choose from by held-out samples."""
        if self.given is None and not samples:
            raise ValueError("there are no validation samples to choose the share of tuned weights: add --tuned-share")
        return SHARES if self.given is None else (self.given,)


def choose(said: Mapping[float, Answers]) -> Tuned:
    """The share of the tuned weights, by the answers on held-out samples of a second stage fitted to each.

    It is the smallest share that the one with the lowest log loss does not beat in a paired test at 5 %. Pairs weigh
    the same, samples of a group count as one, and each share has the temperature that suits it best: what is fitted to
    features that have seen the same samples in tuning is too sure of itself. Where many pairs have no training samples,
    held-out ones do not show what tuning costs these, and the smallest share is kept (docs/results/tuning.md).
    """
    said = {share: tempered(answers) for share, answers in sorted(said.items())}
    losses = {share: value_on(answers, LOSS) or 0.0 for share, answers in said.items()}
    first, best, counts = (
        min(said),
        min(said, key=lambda share: (losses[share], share)),
        next(iter(said.values())).counts,
    )
    chosen = min(share for share in said if not _better(said[best], said[share]))
    why = "the smallest share that no other beats on validation, in a paired test of the log loss at 5 %"
    if len(said) == 1:
        why = "as given"
    elif (counts == 0).mean() > EMPTY:
        empty = f"{(counts == 0).sum():,} of {counts.size:,} pairs have no training samples"
        chosen, why = first, f"{empty}, so validation does not show what tuning costs them: --tuned-share sets it"
    tried = []
    for share, answers in said.items():
        gain = compared(answers, said[first]) if share > first else None
        accuracy = answers.value().pair_average
        assert accuracy is not None
        more = {"low": gain.low, "high": gain.high} if gain else {}
        tried.append(Tried(share=share, pair_average=accuracy, log_loss=losses[share], **more))
    return Tuned(share=chosen, why=why, tried=tried)


def tempered(answers: Answers) -> Answers:
    """The same answers with the temperature of the lowest log loss, all pairs of classes with training samples alike.

    A second stage all but rules out other classes, for which an infinite temperature would be best.
    """
    assert answers.log_p is not None
    learnt = answers.counts.sum(axis=0)[answers.y] > 0
    weights = balanced_weights(answers.y, answers.domain, len(answers.classes)) * learnt
    sharpness = np.exp(fit_sharpness(answers.log_p, answers.y, weights).log_sharpness)
    log_p = log_softmax(sharpness * answers.log_p.astype(np.float64), axis=1)
    return replace(answers, log_p=log_p, true=log_p[np.arange(len(answers)), answers.y])


def compared(one: Answers, other: Answers) -> Difference | None:
    """The log loss of one model minus that of another on the same samples."""
    models = [Models.of([Answered(0, answers, LOSS).sampled], "pair_average") for answers in (one, other)]
    assert models[0] is not None
    return difference(models[0], models[1])


def _better(one: Answers, other: Answers) -> bool:
    found = compared(one, other)
    return found is not None and found.estimate < 0 and found.sure


def _copied(module: nn.Module) -> State:
    return {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
