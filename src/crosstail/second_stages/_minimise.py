"""Smooth functions of a few variables, minimised by L-BFGS (scipy.optimize has it too, and is slow to import)."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


def minimise(terms: Callable[[], Iterable[Tensor]], variables: list[Tensor], **options: Any) -> None:
    """Minimise the sum of some terms by L-BFGS; only one term and its gradients are in memory at a time."""
    optimizer: Any = torch.optim.LBFGS(variables, line_search_fn="strong_wolfe", **options)

    def loss() -> float:
        optimizer.zero_grad()
        value = 0.0
        for term in terms():
            torch.autograd.backward(term)
            value += float(term.detach())
        return value

    optimizer.step(loss)
