"""A moving average of the weights, evaluated beside the weights themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Polynomial-decay averaging with η = 9 (Shamir and Zhang, 2013): about the last tenth of the steps so far.

    θ̄_t = θ̄_{t−1} + (η + 1) / (t + η) · (θ_t − θ̄_{t−1}), so that θ̄_1 = θ_1 and no decay has to be tuned to the
    number of steps.
    """

    ETA = 9

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.state = {name: value.detach().clone() for name, value in module.state_dict().items()}

    def update(self, step: int) -> None:
        """Take in the weights after step 1, 2, …; what is no decimal number is taken as it is."""
        share = (self.ETA + 1) / (step + self.ETA)
        with torch.no_grad():
            averages: list[Tensor] = []
            values: list[Tensor] = []
            for name, value in self.module.state_dict().items():
                if value.is_floating_point():
                    averages.append(self.state[name])
                    values.append(value)
                else:
                    self.state[name].copy_(value)
            torch._foreach_lerp_(averages, values, share)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within, the module has the averaged weights."""
        own = {name: value.detach().clone() for name, value in self.module.state_dict().items()}
        self.module.load_state_dict(self.state)
        try:
            yield
        finally:
            self.module.load_state_dict(own)
