"""Steps that are made of several gradients: of the domains, or of the loss at other weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim import Optimizer

from crosstail.algorithms._algorithm import Algorithm
from crosstail.algorithms._base import ERM, Backward, DomainBatch, descend, slopes, total


class DomainGradients(ERM):
    """A step along a combination of the domains' gradients; a subclass defines `combine`."""

    family = "multi-task"
    min_domains = 2
    one_domain_at_a_time = True
    unshared = "it needs the gradients of whole domains, which no process has"

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        parameters = self.trained
        terms, gradients = [], []
        for part in batch.parts():
            terms.append(self.losses(*self.features(part)))
            gradients.append(slopes(total(terms[-1]), parameters))
        combined = [self.combine(torch.stack(each)) for each in zip(*gradients, strict=True)]
        descend({"direction": with_gradients(parameters, combined)}, optimizers, backward)
        return mean_terms(terms)

    def combine(self, gradients: Tensor) -> Tensor:
        """One gradient of a tensor of weights from the K domains' gradients (K, …)."""
        raise TypeError(f"{type(self).__name__} must define combine(gradients)")


def with_gradients(parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """A loss with given gradients, which `backward` may scale: the gradient of p · g in p is g."""
    return torch.stack([(p * g).sum() for p, g in zip(parameters, gradients, strict=True)]).sum()


def mean_terms(each: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Means of loss terms, for records."""
    return {name: torch.stack([terms[name].detach() for terms in each]).mean() for name in each[0]}


@contextmanager
def moved(algorithm: Algorithm, step: Sequence[Tensor]) -> Iterator[None]:
    """Move the parameters by a step; afterwards, parameters and buffers are as before."""
    before = {name: value.clone() for name, value in algorithm.state_dict().items()}
    with torch.no_grad():
        for parameter, change in zip(algorithm.trained, step, strict=True):
            parameter.add_(change)
    torch.clear_autocast_cache()  # in mixed precision it holds casts of the old weights
    yield
    algorithm.load_state_dict(before)
    torch.clear_autocast_cache()
