"""DA, BoDA and BoDA-M: align the same class across domains, however unequal the pairs' counts.

Yang, Wang and Katabi, On Multi-Domain Long-Tailed Recognition, equations (1) to (3).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail.losses import processes
from crosstail.losses.contrast import Reduction, contrast
from crosstail.losses.distances import Precision
from crosstail.losses.statistics import Covariance, PairStatistics, require_number


def boda_loss(
    z: Tensor,
    y: Tensor,
    domain: Tensor,
    centroids: Tensor,
    counts: Tensor,
    *,
    nu: float = 1.0,
    temperature: float = 1.0,
    balanced: bool = True,
    precision: Precision | None = None,
    reduction: Reduction = "mean",
    pooled: bool = False,
    negatives: int = 0,
    validate: bool = True,
) -> Tensor:
    r"""The calibrated BoDA loss: pull a sample towards its class in other domains, push it away from all other pairs.

    z (B, F) · y (B,) · domain (B,) · centroids (D, C, F) · counts (D, C), 0 where a pair is absent. Equation (3):

    .. math:: \ell_i = -\frac{1}{|D|-1} \sum_{d \ne d_i} \log
        \frac{\exp(-\lambda_i^{d,c_i} \tilde d(z_i, \mu_{d,c_i}))}
             {\sum_{(d',c') \ne (d_i,c_i)} \exp(-\lambda_i^{d',c'} \tilde d(z_i, \mu_{d',c'}))},
        \quad \tilde d = \frac{d}{N_i}, \quad \lambda_i^{d,c} = \Big(\frac{N_{d,c}}{N_i}\Big)^{\nu}

    `balanced=False` is DA, equation (1), without counts; `nu=0` is equation (2); a `precision` (the inverse
    covariances (D, C, F), (D, C, F, F) or a `LowRankPrecision`) is BoDA-M; `temperature` divides every distance.
    Absent pairs are in neither sum, and the mean over positives is over those present.

    `pooled=True` puts the posterior mean and variance of `pooled_means` in place of each centroid and count:

    .. math:: \mu_{d,c} \to \hat\mu_{d,c}, \quad N_{d,c} \to 1 / v_{d,c}

    A mean of n samples has the variance 1 / n, in units of the variance within a pair; so one of variance v is worth
    1 / v samples, which is at least N. Rare pairs are shrunk towards the sum of their class and their domain, absent
    ones are there, and are positives and in the denominator like any other (a `precision` must include them).

    `negatives=K` draws K pairs from torch's generator and estimates the denominator from them, without bias; positives
    are all kept. A step then costs O(B·(K + D)·F) however many pairs there are, except that `pooled` and a precision
    read all statistics. With K ≥ P, or 0, it is exact. The logarithm of an unbiased denominator is on average too
    small, by half its relative variance; the loss likewise (measured: docs/results/negatives.md).

    `reduction="sum"` is the equation as printed; "mean" averages over the samples that have a positive, "positives"
    over all (sample, positive) combinations; "none" gives (B,), 0 where there is no positive. Shapes and dtypes are
    always checked; `validate=False` skips the checks of values (labels, domains, counts, non-finite features), and
    then nothing is read back from the device. So do `torch.compile` and the transforms of `torch.func`.

    >>> z, y, domain = torch.zeros(1, 2), torch.tensor([0]), torch.tensor([0])
    >>> centroids = torch.tensor([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]])
    >>> boda_loss(z, y, domain, centroids, torch.ones(2, 2))  # log(e⁻¹ + 2e⁻³) + 1
    tensor(0.2395)
    """
    require_number("nu", nu, math.isfinite, "a finite number")
    require_number("temperature", temperature, lambda value: value > 0, "a number above 0")
    found = contrast(z, y, domain, centroids, counts, precision, reduction, pooled, negatives, validate)
    if balanced:
        n_pair, largest = found.n_pair, found.n_pair.max()
        # Powers of counts are relative to the largest and in logarithms, so that none overflows on the way.
        own = (nu * largest.log() - (1 + nu) * found.n_own.log()).exp()
        # Logits are kept within the range of floats, so that the difference of two is never inf − inf.
        for block in found.blocks:
            farthest = block.distance.detach().amax(1)
            own = own.clamp_max(temperature * torch.finfo(own.dtype).max / 1e6 / farthest)
        relative = [(nu * (block.pick(n_pair) / largest).log()).exp() / -temperature for block in found.blocks]
        # −λ / N_i = −N_pᵛ / N_iᵛ⁺¹
        logits = [block.distance * (own[:, None] * n) for block, n in zip(found.blocks, relative, strict=True)]
    else:
        logits = [block.distance * (-1 / temperature) for block in found.blocks]
    positive = found.positive.to(logits[0].dtype)
    share = positive / positive.sum(1, keepdim=True).clamp_min(1)  # (B, D)
    return found.reduce(found.losses(logits, share), torch.ones_like(found.n_own), reduction)


def rescaled_boda_loss(
    z: Tensor,
    y: Tensor,
    domain: Tensor,
    centroids: Tensor,
    counts: Tensor,
    *,
    nu: float = 1.0,
    balanced: bool = True,
    precision: Precision | None = None,
    reduction: Reduction = "mean",
    pooled: bool = False,
    negatives: int = 0,
    validate: bool = True,
) -> Tensor:
    r"""A relative of the BoDA loss whose gradients are bounded for any counts and any scale of the features.

    In `boda_loss`, λ / N_i may reach 10⁶ between a pair of one sample and one of a thousand: the softmax is flat for
    most samples, and a few rare ones dominate the step. Here distances are divided by the batch's mean distance
    (detached), and counts act outside the exponent:

    .. math:: \ell_i = \frac{\bar N}{N_i} \Big( \log \sum_{p \ne p_i} N_p^\nu e^{-d_{ip} / \bar d} +
        \sum_{p \in \mathrm{pos}(i)} \frac{N_p^\nu}{\sum_{q \in \mathrm{pos}(i)} N_q^\nu}
        \frac{d_{ip}}{\bar d} - \log \overline{N^\nu} \Big)

    This is closer to equation (2) than to (3): with one positive, as with two domains, ν acts only through the
    denominator. A sample's gradient is at most 2 / mean distance, before N̄ / N_i. "mean" is weighted by N̄ / N_i, so
    it never exceeds the largest sample's loss (experiments: docs/decisions/boda-scale.md). Arguments as in `boda_loss`.
    """
    require_number("nu", nu, math.isfinite, "a finite number")
    found = contrast(z, y, domain, centroids, counts, precision, reduction, pooled, negatives, validate)
    n_pair = found.n_pair
    scale = -found.mean_distance().clamp_min(torch.finfo(n_pair.dtype).tiny)
    logits = [block.distance / scale for block in found.blocks]
    prior, importance = torch.zeros_like(n_pair), torch.ones_like(found.n_own)
    if balanced:
        prior = nu * (n_pair / n_pair.max()).log()
        importance = found.mean(n_pair) / found.n_own
    share = torch.where(found.positive, found.of_class(prior), -torch.inf).softmax(1)
    share = torch.where(found.positive, share, 0.0)  # (B, D), adds up to 1 where there is a positive
    centred = prior - found.mean(prior.exp()).log()
    push = [each + block.pick(centred) for each, block in zip(logits, found.blocks, strict=True)]
    counted = torch.where(found.positive, found.of_class(centred), 0.0)  # in the denominator only
    losses = found.losses(push, share) + (share * counted).sum(1)
    return found.reduce(losses * importance, importance, reduction)


class BoDALoss(nn.Module):
    """`boda_loss` with pair statistics that are updated from each batch, without an extra forward pass.

    `counts` (D, C) are the training counts. In training mode each call first adds the batch's features
    (detached); a pair's past weighs at most as much as its training samples, and at most as `window` of them, so
    that the centroid of a rare pair follows its latest samples. With `window=None` the statistics change only
    through `statistics.update` and `.blend`, as in the paper: a full pass after each epoch. `rescaled` uses
    `rescaled_boda_loss` instead; `pooled`, `negatives` and `validate` are as in `boda_loss`. A pair that no batch
    has shown yet is absent.

    Where several processes train together (a process group is initialised), each one has the statistics, the loss and,
    after its gradients are averaged, as by DistributedDataParallel, the step of the whole batch, whatever the number
    of samples per process; `synchronise=False` uses its own samples only. Evaluation is not synchronised.

    >>> criterion = BoDALoss(2, 2, 8, counts=torch.tensor([[100, 5], [3, 80]]))
    >>> z = torch.randn(4, 8, requires_grad=True)
    >>> loss = criterion(z, torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]))
    >>> loss.backward()
    """

    counts: Tensor

    def __init__(
        self,
        num_domains: int,
        num_classes: int,
        num_features: int,
        counts: Tensor | NDArray[Any],
        *,
        nu: float = 1.0,
        temperature: float = 1.0,
        rescaled: bool = False,
        balanced: bool = True,
        covariance: Covariance = "none",
        window: int | None = 100,
        reduction: Reduction = "mean",
        pooled: bool = False,
        negatives: int = 0,
        synchronise: bool = True,
        validate: bool = True,
    ) -> None:
        super().__init__()
        counts = torch.as_tensor(counts)
        if counts.shape != (num_domains, num_classes):
            raise ValueError(f"counts is {tuple(counts.shape)}, expected {(num_domains, num_classes)}")
        if window is not None and window < 1:
            raise ValueError(f"window is {window}, expected 1 or more, or None if statistics come from full passes")
        self.register_buffer("counts", counts)
        if rescaled:
            if temperature != 1:
                raise ValueError(f"temperature is {temperature}, but the rescaled loss has none: leave it at 1")
            self.loss: Callable[..., Tensor] = rescaled_boda_loss
        else:
            self.loss = partial(boda_loss, temperature=temperature)
        self.options = {
            "nu": nu, "balanced": balanced, "reduction": reduction,
            "pooled": pooled, "negatives": negatives, "validate": validate,
        }  # fmt: skip
        self.window, self.synchronise, self.validate = window, synchronise, validate
        remembered = counts.clamp(1, window or 1).to(torch.float32) - 1
        momentum = remembered / (remembered + 1) if window else None
        self.statistics = PairStatistics(num_domains, num_classes, num_features, covariance, momentum=momentum)

    def forward(self, z: Tensor, y: Tensor, domain: Tensor) -> Tensor:
        sizes: list[int] = []  # of the processes' batches, if there are several
        each = self.options["reduction"] == "none"
        if self.training and self.synchronise and processes.several():
            sizes = processes.batch_sizes(z)
            z, y, domain = (processes.gathered(values, sizes, averaged=not each) for values in (z, y, domain))
        if self.training and self.window:
            self.statistics.update(z, y, domain, validate=self.validate)
        known = self.statistics
        loss = self.loss(
            z,
            y,
            domain,
            known.mean,
            self.counts * (known.counts > 0),  # a pair not seen yet has no centroid of its own
            precision=None if known.covariance == "none" else known.precision(),
            **self.options,
        )
        return torch.split(loss, sizes)[dist.get_rank()] if sizes and each else loss
