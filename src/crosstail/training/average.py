"""Averages of the weights over the steps, evaluated beside the weights themselves."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from crosstail.training.spec import Average

ETA = 9
BURN_IN = 0.1
START, END, TOLERANCE = 3, 6, 1.3  # N_s, N_e and r of SWAD

Weights = dict[str, Tensor]
Tensors = tuple[Tensor, ...] | list[Tensor]


class WeightAverage:
    """An average over all steps so far: moving, or uniform after a burn-in. Non-float buffers are copied.

    moving is polynomial-decay averaging with η = 9 (Shamir and Zhang, 2013): after step t,
    θ̄_t = θ̄_{t−1} + (η + 1) / (t + η) · (θ_t − θ̄_{t−1}), which is about the last tenth of the steps so far, so no
    decay has to be tuned to their number. uniform is the mean of all weights after the first tenth of the steps
    (Arpit et al., 2022), as in ERM++.
    """

    selects_itself = False  # whether the last one counts, and not the best on validation

    def __init__(self, module: nn.Module, kind: Average, steps: int) -> None:
        skipped = round(BURN_IN * steps)
        shares: dict[str, Callable[[int], float]] = {
            "moving": lambda t: (ETA + 1) / (t + ETA),
            "uniform": lambda t: 1 / max(1, t - skipped),
            "swad": lambda t: 1 / t,
        }

        def average(means: Tensors, values: Tensors, _: object) -> None:
            # The last argument is the count on the device; reading it there would synchronise.
            if means[0].is_floating_point():
                torch._foreach_lerp_(means, values, shares[kind](int(self.copy.n_averaged) + 1))
            else:
                torch._foreach_copy_(means, values)

        self.copy = AveragedModel(module, multi_avg_fn=average, use_buffers=True)

    @property
    def module(self) -> Any:
        return self.copy.module

    def add(self, module: nn.Module) -> None:
        self.copy.update_parameters(module)

    def at_evaluation(self, step: int, loss: float | None) -> tuple[int, int] | None:
        """Prepare `module`, given the validation loss of the weights themselves; the steps of its window, if any."""
        return None

    def state_dict(self) -> dict[str, Any]:
        return self.copy.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.copy.load_state_dict(state)


class Swad(WeightAverage):
    """SWAD: the mean of all weights in a window of steps chosen by validation loss (Cha et al., 2021).

    The weights between two evaluations are averaged as they come, and these means are kept until it is known whether
    they belong to the window.
    """

    selects_itself = True

    def __init__(self, module: nn.Module, kind: Average, steps: int) -> None:
        super().__init__(module, kind, steps)
        self.ends, self.losses = [0], list[float]()  # steps of the evaluations, and losses at all but the first
        self.recent: dict[int, Weights] = {}  # means since the evaluation before, of the last N_e evaluations
        self.settled: tuple[int, Weights] | None = None  # number and mean of the steps before those, in the window

    def at_evaluation(self, step: int, loss: float | None) -> tuple[int, int] | None:
        if loss is None:
            raise ValueError("--average swad needs validation samples, and the data have none: use --average uniform")
        if not step:
            return None
        last = len(self.losses)
        self.ends.append(step)
        self.losses.append(loss)
        self.recent[last] = {name: value.detach().cpu().clone() for name, value in self.module.state_dict().items()}
        start, end = window(self.losses)
        if (oldest := last - END) in self.recent:
            known = self.recent.pop(oldest)
            if start <= oldest <= end:
                self.settled = self._merged([oldest], {oldest: known})
        inside = [k for k in self.recent if start <= k <= end]
        merged = self._merged(inside, self.recent)
        self.module.load_state_dict(merged[1])
        self.copy.n_averaged.zero_()  # the next step begins a new mean
        return self.ends[start] + 1, self.ends[end + 1]

    def _merged(self, chosen: Sequence[int], means: dict[int, Weights]) -> tuple[int, Weights]:
        number, weights = self.settled or (0, {})
        for k in chosen:
            own = self.ends[k + 1] - self.ends[k]
            number += own
            weights = {n: _moved(weights.get(n), value, own / number) for n, value in means[k].items()}
        return number, weights

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("ends", "losses", "recent", "settled")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


def _moved(mean: Tensor | None, value: Tensor, share: float) -> Tensor:
    return value if mean is None or not value.is_floating_point() else torch.lerp(mean, value, share)


def window(losses: Sequence[float]) -> tuple[int, int]:
    """First and last evaluation of SWAD's window, given the validation losses so far (Cha et al., 2021, algorithm 1).

    It starts at the first loss that the next N_s − 1 do not improve on, and ends N_e evaluations before all of the last
    N_e exceed r times the mean of those first N_s. Before it has started, it is the last evaluation.
    """
    for i in range(START, len(losses) + 1):
        first = losses[i - START : i]
        if first[0] == min(first):
            limit = TOLERANCE * sum(first) / START
            exceeded = (j for j in range(i + 1, len(losses) + 1) if min(losses[max(0, j - END) : j]) > limit)
            return i - START, next(exceeded, len(losses) + END) - END - 1
    return len(losses) - 1, len(losses) - 1
