"""DA, BoDA and BoDA-M: align the same class across domains, however unequal the pairs' counts.

Yang, Wang and Katabi, On Multi-Domain Long-Tailed Recognition, equations (1) to (3).
"""

from typing import Any, Literal, get_args

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail.losses.distances import LowRankPrecision, Precision, pair_distances
from crosstail.losses.statistics import Covariance, PairStatistics

Reduction = Literal["mean", "sum", "none"]


def boda_loss(
    z: Tensor,
    y: Tensor,
    domain: Tensor,
    centroids: Tensor,
    counts: Tensor,
    *,
    nu: float = 1.0,
    temperature: float | Literal["auto"] = 1.0,
    balanced: bool = True,
    precision: Precision | None = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""The calibrated BoDA loss: pull a sample to its class in other domains, push it from every other pair.

    z (B, F) · y (B,) · domain (B,) · centroids (D, C, F) · counts (D, C), 0 where a pair is absent. Equation (3):

    .. math:: \ell_i = -\frac{1}{|D|-1} \sum_{d \ne d_i} \log
        \frac{\exp(-\lambda_i^{d,c_i} \tilde d(z_i, \mu_{d,c_i}))}
             {\sum_{(d',c') \ne (d_i,c_i)} \exp(-\lambda_i^{d',c'} \tilde d(z_i, \mu_{d',c'}))},
        \quad \tilde d = \frac{d}{N_i}, \quad \lambda_i^{d,c} = \Big(\frac{N_{d,c}}{N_i}\Big)^{\nu}

    `balanced=False` is DA, equation (1), with no count in it; `nu=0` is equation (2); a `precision` (the inverse
    covariances (D, C, F), (D, C, F, F) or a `LowRankPrecision`) is BoDA-M. `reduction="sum"` is the equation as
    printed; "mean" averages over the samples that have a positive; "none" gives (B,), 0 where there is no positive.
    Absent pairs are in neither sum, and the mean over positives is over those present.

    A `temperature` divides every distance. As printed, λ / N_i may reach 10⁶ between a pair of one sample and one
    of a thousand: the softmax is then flat for most samples, and the few rare ones decide the step. "auto" divides
    by the batch's mean distance (a constant to the gradient) and moves the counts out of the exponent:

    .. math:: \ell_i = \frac{\bar N}{N_i} \Big( \log \sum_{p \ne p_i} N_p^\nu e^{-d_{ip} / \bar d} +
        \sum_{p \in \mathrm{pos}(i)} \frac{N_p^\nu}{\sum_{q \in \mathrm{pos}(i)} N_q^\nu}
        \frac{d_{ip}}{\bar d} - \log \overline{N^\nu} \Big)

    Where the softmax is flat, a sample is pulled and pushed in the same two directions as by equation (3), the means
    with weights N_pᵛ over the positives and over all other pairs; only their strengths, which there depend on the
    counts, are one each. So a sample's gradient is at most 2 / mean distance, before N̄ / N_i. "mean" is the mean with
    these weights N̄ / N_i, so that no count ratio can make the term larger than its largest sample
    (docs/decisions/boda-scale.md has the trials).

    >>> z, y, domain = torch.zeros(1, 2), torch.tensor([0]), torch.tensor([0])
    >>> centroids = torch.tensor([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]])
    >>> boda_loss(z, y, domain, centroids, torch.ones(2, 2))  # log(e⁻¹ + 2e⁻³) + 1
    tensor(0.2395)
    """
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction {reduction!r} is none of {', '.join(get_args(Reduction))}")
    if temperature != "auto" and (isinstance(temperature, str) or not temperature > 0):
        raise ValueError(f'temperature is {temperature!r}, expected a number above 0 or "auto"')
    num_domains, num_classes, _ = centroids.shape
    if counts.shape != (num_domains, num_classes):
        raise ValueError(f"counts is {tuple(counts.shape)}, expected {(num_domains, num_classes)} as centroids has")
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    if len(z) == 0 or not bool((counts > 0).any()):
        nothing = z[:, :0].sum(1).to(wide)
        return nothing if reduction == "none" else nothing.sum()

    # The present pairs become P columns; column[d, c] is where a pair went.
    flat = counts.reshape(-1).to(z.device)
    present = flat > 0
    centroids, precision = _keep(centroids, present), _keep(precision, present)
    column = (present.cumsum(0) - 1).clamp_min(0).view(num_domains, num_classes)
    present = present.view(num_domains, num_classes)
    n_pair = flat[flat > 0].to(wide)  # (P,)
    n_own = flat.view(num_domains, num_classes)[domain, y].clamp_min(1).to(wide)  # (B,)

    distance = pair_distances(z, centroids, precision)  # (B, P)
    limits = torch.finfo(wide)
    # Powers of counts are relative to the largest count, in logarithms, so that none overflows.
    reliability = nu * (n_pair / n_pair.max()).log()  # (P,)
    prior = torch.zeros_like(reliability)
    importance = torch.ones_like(n_own)
    if temperature == "auto":
        mean_distance = (distance.detach() / distance.numel()).sum()  # in this order it cannot overflow
        logits = distance / -mean_distance.clamp_min(limits.tiny)
        if balanced:
            prior = reliability
            importance = n_pair.mean() / n_own
    elif balanced:
        strength = (nu * n_pair.max().log() - (1 + nu) * n_own.log()).exp().clamp_max(limits.max)  # (B,)
        weight = strength[:, None] * (reliability.exp() / -temperature)  # λ / N_i = N_pᵛ / N_iᵛ⁺¹
        logits = (distance * weight).clamp_min(limits.min / 1e6)
    else:
        logits = (distance / -temperature).clamp_min(limits.min / 1e6)

    # Positives: the same class in every other domain where it is present.
    columns = column[:, y].T  # (B, D)
    same_class = present[:, y].T  # (B, D)
    positive = same_class & (torch.arange(num_domains, device=z.device) != domain[:, None])
    has_positive = positive.any(1)
    share = torch.where(positive, prior[columns], -torch.inf).softmax(1)
    share = torch.where(positive, share, 0.0)  # (B, D), adds up to 1 where there is a positive
    attraction = (logits.gather(1, columns) * share).sum(1)
    # A sample's own pair is left out of the denominator (one without a positive keeps it: its loss is 0 anyway).
    logits = logits + (prior - prior.exp().mean().log())
    (rows,) = (has_positive & present[domain, y]).nonzero(as_tuple=True)
    logits.index_put_((rows, column[domain, y][rows]), logits.new_tensor(-torch.inf))
    loss = torch.where(has_positive, logits.logsumexp(1) - attraction, 0.0) * importance

    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (importance * has_positive).sum().clamp_min(torch.finfo(loss.dtype).tiny)


def _keep(table: Tensor | LowRankPrecision | None, present: Tensor) -> Any:
    """The rows of present pairs of a (D, C, ...) table as (P, ...), without a copy if all are."""
    if table is None:
        return None
    if isinstance(table, LowRankPrecision):
        return LowRankPrecision(*(_keep(part, present) for part in table))
    flat = table.flatten(0, 1)
    return flat if bool(present.all()) else flat[present]


class BoDALoss(nn.Module):
    """`boda_loss` with statistics that it keeps up to date from the batches it sees, at no extra forward pass.

    `counts` (D, C) are those of the training set. In training mode each call first takes in the batch's features
    (detached); a pair's past weighs at most as much as its own training samples, and at most as `window` of them, so
    that a rare pair's centroid is never older than its last visit. With `window=None` the statistics change only
    through `statistics.update` and `.blend`, which is the paper's way: a full pass after each epoch.

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
        temperature: float | Literal["auto"] = "auto",
        balanced: bool = True,
        covariance: Covariance = "none",
        window: int | None = 100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        counts = torch.as_tensor(counts)
        if counts.shape != (num_domains, num_classes):
            raise ValueError(f"counts is {tuple(counts.shape)}, expected {(num_domains, num_classes)}")
        if window is not None and window < 1:
            raise ValueError(f"window is {window}, expected 1 or more, or None if full passes make the statistics")
        self.register_buffer("counts", counts)
        self.nu, self.temperature, self.balanced, self.reduction = nu, temperature, balanced, reduction
        self.window = window
        remembered = counts.clamp(1, window or 1).to(torch.float32) - 1
        self.statistics = PairStatistics(
            num_domains,
            num_classes,
            num_features,
            covariance,
            momentum=remembered / (remembered + 1) if window else None,
        )

    def forward(self, z: Tensor, y: Tensor, domain: Tensor) -> Tensor:
        """The loss of a batch z (B, F), y (B,), domain (B,)."""
        if self.training and self.window:
            self.statistics.update(z, y, domain)
        return boda_loss(
            z,
            y,
            domain,
            self.statistics.mean,
            self.counts * (self.statistics.counts > 0),  # a pair not met yet has no centroid
            nu=self.nu,
            temperature=self.temperature,
            balanced=self.balanced,
            precision=None if self.statistics.covariance == "none" else self.statistics.precision(),
            reduction=self.reduction,
        )
