"""DA, BoDA and BoDA-M: align the same class across domains, however unequal the pairs' counts.

Yang, Wang and Katabi, On Multi-Domain Long-Tailed Recognition, equations (1) to (3).
"""

from typing import Any, Literal, NamedTuple, get_args

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crosstail.losses.distances import LowRankPrecision, Precision, on_host, pair_distances, split
from crosstail.losses.statistics import Covariance, PairStatistics, checked_batch, require

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
    validate: bool = True,
) -> Tensor:
    r"""The calibrated BoDA loss: pull a sample towards its class in other domains, push it away from all other pairs.

    z (B, F) · y (B,) · domain (B,) · centroids (D, C, F) · counts (D, C), 0 where a pair is absent. Equation (3):

    .. math:: \ell_i = -\frac{1}{|D|-1} \sum_{d \ne d_i} \log
        \frac{\exp(-\lambda_i^{d,c_i} \tilde d(z_i, \mu_{d,c_i}))}
             {\sum_{(d',c') \ne (d_i,c_i)} \exp(-\lambda_i^{d',c'} \tilde d(z_i, \mu_{d',c'}))},
        \quad \tilde d = \frac{d}{N_i}, \quad \lambda_i^{d,c} = \Big(\frac{N_{d,c}}{N_i}\Big)^{\nu}

    `balanced=False` is DA, equation (1), without counts; `nu=0` is equation (2); a `precision` (the inverse
    covariances (D, C, F), (D, C, F, F) or a `LowRankPrecision`) is BoDA-M. `reduction="sum"` is the equation as
    printed; "mean" averages over the samples that have a positive; "none" gives (B,), 0 where there is no positive.
    Absent pairs are in neither sum, and the mean over positives is over those present. Shapes and dtypes are always
    checked; `validate=False` skips the checks of values (labels, domains, counts, non-finite features), and then
    nothing is read back from the device.

    `temperature` divides every distance. As printed, λ / N_i may reach 10⁶ between a pair of one sample and one
    of a thousand: the softmax is then flat for most samples, and a few rare ones dominate the step. "auto" divides
    by the batch's mean distance (detached) and moves the counts out of the exponent:

    .. math:: \ell_i = \frac{\bar N}{N_i} \Big( \log \sum_{p \ne p_i} N_p^\nu e^{-d_{ip} / \bar d} +
        \sum_{p \in \mathrm{pos}(i)} \frac{N_p^\nu}{\sum_{q \in \mathrm{pos}(i)} N_q^\nu}
        \frac{d_{ip}}{\bar d} - \log \overline{N^\nu} \Big)

    Where the softmax is flat, a sample is pulled and pushed in the same two directions as by equation (3), with
    strengths that do not depend on the counts: its gradient is at most 2 / mean distance, before N̄ / N_i. "mean" is
    weighted by N̄ / N_i, so it never exceeds the largest sample's loss (experiments: docs/decisions/boda-scale.md).

    >>> z, y, domain = torch.zeros(1, 2), torch.tensor([0]), torch.tensor([0])
    >>> centroids = torch.tensor([[[0.0, 0.0], [3.0, 0.0]], [[0.0, 1.0], [0.0, 3.0]]])
    >>> boda_loss(z, y, domain, centroids, torch.ones(2, 2))  # log(e⁻¹ + 2e⁻³) + 1
    tensor(0.2395)
    """
    if reduction not in get_args(Reduction):
        raise ValueError(f"reduction {reduction!r} is none of {', '.join(get_args(Reduction))}")
    if temperature != "auto" and (isinstance(temperature, str) or not temperature > 0):
        raise ValueError(f'temperature is {temperature!r}, expected a number above 0 or "auto"')
    y, domain = _checked(z, y, domain, centroids, counts, precision, validate)
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    counts = counts.to(z.device)
    pairs = _pairs(centroids, precision, counts)
    if len(z) == 0 or len(pairs.centroids) == 0:
        nothing = z[:, :0].sum(1).to(wide)
        return nothing if reduction == "none" else nothing.sum()
    n_pair = pairs.counts.to(wide)  # (P,)
    n_own = counts[domain, y].clamp_min(1).to(wide)  # (B,)

    distance = pair_distances(z, pairs.centroids, pairs.precision, validate=validate)  # (B, P)
    limits = torch.finfo(wide)
    # Powers of counts are relative to the largest and in logarithms, so that none overflows.
    reliability = nu * (n_pair / n_pair.max()).log()  # (P,)
    prior = torch.zeros_like(reliability)
    importance = torch.ones_like(n_own)
    if temperature == "auto":
        # Divided before summing, so that it cannot overflow.
        mean_distance = torch.where(pairs.present, distance.detach() / (len(z) * pairs.number), 0.0).sum()
        logits = distance / -mean_distance.clamp_min(limits.tiny)
        if balanced:
            prior = reliability
            importance = pairs.mean(n_pair) / n_own
    elif balanced:
        strength = (nu * n_pair.max().log() - (1 + nu) * n_own.log()).exp().clamp_max(limits.max)  # (B,)
        weight = strength[:, None] * (reliability.exp() / -temperature)  # λ / N_i = N_pᵛ / N_iᵛ⁺¹
        logits = (distance * weight).clamp_min(limits.min / 1e6)
    else:
        logits = (distance / -temperature).clamp_min(limits.min / 1e6)

    # Positives: the same class in every other domain where it is present.
    present = counts > 0
    columns = pairs.column[:, y].T  # (B, D)
    positive = present[:, y].T & (torch.arange(len(counts), device=z.device) != domain[:, None])  # (B, D)
    has_positive = positive.any(1)
    share = torch.where(positive, prior[columns], -torch.inf).softmax(1)
    share = torch.where(positive, share, 0.0)  # (B, D), adds up to 1 where there is a positive
    attraction = (logits.gather(1, columns) * share).sum(1)
    # The denominator: all present pairs but the sample's own. (Without a positive the loss is 0 anyway.)
    logits = logits + (prior - pairs.mean(prior.exp()).log())
    places = torch.arange(logits.shape[1], device=z.device)
    own = present[domain, y][:, None] & (places == pairs.column[domain, y][:, None])
    logits = logits.masked_fill(has_positive[:, None] & (own | ~pairs.present), -torch.inf)
    loss = torch.where(has_positive, logits.logsumexp(1) - attraction, 0.0) * importance

    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (importance * has_positive).sum().clamp_min(torch.finfo(loss.dtype).tiny)


def _checked(
    z: Tensor, y: Tensor, domain: Tensor, centroids: Tensor, counts: Tensor, precision: Precision | None, validate: bool
) -> tuple[Tensor, Tensor]:
    """Labels and domains as int64, once all arguments are checked against each other."""
    require("centroids", centroids, centroids.ndim == 3 and centroids.is_floating_point(), "floats (D, C, F)")
    shape = tuple(centroids.shape)
    numbers = counts.dtype != torch.bool and not counts.is_complex()
    require("counts", counts, counts.shape == shape[:2] and numbers, f"numbers {shape[:2]}, as for centroids")
    for part in split(precision):
        if part is not None:
            fits = part.shape[:3] == shape and part.ndim <= 4 and part.is_floating_point()
            require("precision", part, fits, f"floats {shape} or {(*shape, shape[2])}")
    if validate and not bool(((counts >= 0) & (counts < torch.inf)).all()):
        raise ValueError("counts has a negative or non-finite entry, expected the number of training samples per pair")
    return checked_batch(z, y, domain, centroids, validate=validate)


class _Pairs(NamedTuple):
    """The P pairs that the loss is computed on."""

    centroids: Tensor  # (P, F)
    precision: Precision | None
    counts: Tensor  # (P,)
    column: Tensor  # (D, C), index of each pair among the P
    present: Tensor  # (P,)
    number: Tensor  # of pairs that are present

    def mean(self, values: Tensor) -> Tensor:
        """The mean of values (P,) over the pairs that are present."""
        return torch.where(self.present, values, 0.0).sum() / self.number


def _pairs(centroids: Tensor, precision: Precision | None, counts: Tensor) -> _Pairs:
    """Absent pairs are dropped on the CPU, and masked on a device, where counting them would be a read."""
    flat = counts.reshape(-1)
    known = flat > 0
    if on_host(counts):
        kept = torch.from_numpy(known.numpy().nonzero()[0])
        present, n, column = known[kept], flat[kept], (known.cumsum(0) - 1).clamp_min(0)
    else:
        present = known | ~known.any()  # without any pair there is no positive, and the means do not matter
        n, column = torch.where(known, flat, 1), torch.arange(len(flat), device=flat.device)
    number = present.sum()

    def choose(table: Tensor) -> Tensor:
        table = table.flatten(0, 1)
        if on_host(counts):
            return table if len(kept) == len(table) else table[kept]
        # Absent pairs, whose statistics may be anything, get the mean of the present ones.
        mask = known.view(-1, *[1] * (table.ndim - 1))
        safe = torch.where(mask, table, 0.0)
        return torch.where(mask, safe, safe.detach().sum(0) / number)

    main, factor = (None if part is None else choose(part) for part in split(precision))
    chosen = main if main is None or factor is None else LowRankPrecision(main, factor)
    return _Pairs(choose(centroids), chosen, n, column.view(counts.shape), present, number)


class BoDALoss(nn.Module):
    """`boda_loss` with pair statistics that are updated from each batch, without an extra forward pass.

    `counts` (D, C) are those of the training set. In training mode each call first adds the batch's features
    (detached); a pair's past weighs at most as much as its training samples, and at most as `window` of them, so
    that the centroid of a rare pair follows its latest samples. With `window=None` the statistics change only
    through `statistics.update` and `.blend`, as in the paper: a full pass after each epoch. `validate=False` skips
    the checks of values, as in `boda_loss`.

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
        validate: bool = True,
    ) -> None:
        super().__init__()
        counts = torch.as_tensor(counts)
        if counts.shape != (num_domains, num_classes):
            raise ValueError(f"counts is {tuple(counts.shape)}, expected {(num_domains, num_classes)}")
        if window is not None and window < 1:
            raise ValueError(f"window is {window}, expected 1 or more, or None if statistics come from full passes")
        self.register_buffer("counts", counts)
        self.nu, self.temperature, self.balanced, self.reduction = nu, temperature, balanced, reduction
        self.window, self.validate = window, validate
        remembered = counts.clamp(1, window or 1).to(torch.float32) - 1
        momentum = remembered / (remembered + 1) if window else None
        self.statistics = PairStatistics(num_domains, num_classes, num_features, covariance, momentum=momentum)

    def forward(self, z: Tensor, y: Tensor, domain: Tensor) -> Tensor:
        if self.training and self.window:
            self.statistics.update(z, y, domain, validate=self.validate)
        return boda_loss(
            z,
            y,
            domain,
            self.statistics.mean,
            self.counts * (self.statistics.counts > 0),  # a pair not seen yet has no centroid
            nu=self.nu,
            temperature=self.temperature,
            balanced=self.balanced,
            precision=None if self.statistics.covariance == "none" else self.statistics.precision(),
            reduction=self.reduction,
            validate=self.validate,
        )
