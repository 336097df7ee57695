"""A moving average of the weights, evaluated beside the weights themselves."""

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

ETA = 9


def averaged_copy(module: nn.Module) -> AveragedModel:
    """A copy of a module, on its device, for polynomial-decay averaging with η = 9 (Shamir and Zhang, 2013).

    After step t, θ̄_t = θ̄_{t−1} + (η + 1) / (t + η) · (θ_t − θ̄_{t−1}): about the last tenth of the steps so far, so no
    decay has to be tuned to the number of steps. Float buffers are averaged too, others are copied.
    """

    def average(means: tuple[Tensor, ...] | list[Tensor], values: tuple[Tensor, ...] | list[Tensor], _: object) -> None:
        # The last argument is the count on the device; reading it there would synchronise.
        t = int(copy.n_averaged) + 1
        if means[0].is_floating_point():
            torch._foreach_lerp_(means, values, (ETA + 1) / (t + ETA))
        else:
            torch._foreach_copy_(means, values)

    copy = AveragedModel(module, multi_avg_fn=average, use_buffers=True)
    return copy
