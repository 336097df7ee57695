"""Samples against the centroids of all pairs: what both forms of the BoDA loss are computed from."""

from numbers import Integral
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from crosstail.losses.distances import Precision, each_part, pair_distances, split
from crosstail.losses.host import in_full_precision, on_host, readable, require_finite
from crosstail.losses.negatives import Block, sampled_blocks
from crosstail.losses.pooling import pooled_means
from crosstail.losses.statistics import checked_batch, require, require_number, require_tensors

Reduction = Literal["mean", "positives", "sum", "none"]
REDUCTIONS = get_args(Reduction)


class Contrast(NamedTuple):
    """Samples against pairs: one block of all P or, with sampled negatives, a drawn one and one of the same class."""

    blocks: tuple[Block, ...]
    n_pair: Tensor  # (P,)
    n_own: Tensor  # (B,), count of the sample's pair, at least 1
    columns: Tensor  # (B, D), place in the last block of the sample's class in each domain
    positive: Tensor  # (B, D), whether that pair is present and not the sample's own
    present: Tensor  # (P,)

    def mean(self, values: Tensor) -> Tensor:
        """The mean of values (P,) over the pairs that are present."""
        return torch.where(self.present, values, 0.0).sum() / self.present.sum()

    def mean_distance(self) -> Tensor:
        """Over the batch and the pairs that are present, or the drawn ones among them; detached."""
        first = self.blocks[0]
        distance, present = first.distance.detach(), first.pick(self.present)
        # Divided before summing, so that it cannot overflow.
        return torch.where(present, distance / (max(len(distance), 1) * present.sum()), 0.0).sum()

    def of_class(self, values: Tensor) -> Tensor:
        """Values (P,) of the pairs of each sample's class (B, D)."""
        last = self.blocks[-1]
        return last.pick(values).expand_as(last.distance).gather(1, self.columns)

    def losses(self, logits: list[Tensor], share: Tensor) -> Tensor:
        """−Σ_{positives} share · log softmax over the pairs but its own, and 0 without a positive (B,); by block."""
        lowest = torch.finfo(share.dtype).min / 2  # not −∞, since all pairs of a block may be excluded
        each = [torch.where(block.excluded, lowest, one) for block, one in zip(self.blocks, logits, strict=True)]
        if len(each) > 1:
            each = [torch.cat([one + block.log_weight for block, one in zip(self.blocks, each, strict=True)], 1)]
        first = each[0].shape[1] - logits[-1].shape[1]  # of the last block, which has the positives
        log_p = each[0].log_softmax(1).gather(1, self.columns + first)
        return torch.where(self.positive.any(1), -(log_p * share).sum(1), 0.0)

    def reduce(self, losses: Tensor, weight: Tensor, reduction: Reduction) -> Tensor:
        """Apply the reduction; `weight` (B,) is the weight that the losses already include."""
        if reduction == "none":
            return losses
        if reduction == "sum":
            return losses.sum()
        number = self.positive.sum(1) if reduction == "positives" else self.positive.any(1)
        return (losses * number).sum() / (weight * number).sum().clamp_min(torch.finfo(losses.dtype).tiny)


def contrast(
    z: Tensor,
    y: Tensor,
    domain: Tensor,
    centroids: Tensor,
    counts: Tensor,
    precision: Precision | None,
    reduction: Reduction,
    pooled: bool,
    negatives: int,
    validate: bool,
) -> Contrast:
    """Check the arguments, and compute the distances of the batch to the pairs that take part."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is not one of {', '.join(REDUCTIONS)}")
    counted = isinstance(negatives, Integral) and negatives >= 0
    require_number("negatives", negatives, lambda _: counted, "the number of pairs to draw, or 0 for all of them")
    validate = validate and readable()
    y, domain = _checked(z, y, domain, centroids, counts, precision, validate)
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    counts = counts.to(z.device)
    if pooled:
        centroids, counts = _pooled(centroids.to(wide), counts, validate)
    present = counts > 0
    positive = present[:, y].T & (torch.arange(len(counts), device=z.device) != domain[:, None])
    n_own = counts[domain, y].clamp_min(1).to(wide)
    most = int(present.numpy().sum()) if on_host(present) else present.numel()
    if 0 < negatives < most:
        n_pair = torch.where(present, counts, 1).flatten().to(wide)
        blocks = sampled_blocks(z, y, centroids, precision, present, positive, negatives, validate)
        columns = torch.arange(len(counts), device=z.device).expand(len(y), -1)
        return Contrast(blocks, n_pair, n_own, columns, positive, present.flatten())
    pairs = _pairs(centroids, precision, counts)
    distance = pair_distances(z, pairs.centroids, pairs.precision, validate=validate)
    has_positive = positive.any(1, keepdim=True)
    own = pairs.column[domain, y][:, None], has_positive & present[domain, y][:, None]
    excluded = torch.zeros_like(distance, dtype=torch.bool).scatter(1, *own)
    if not on_host(distance):  # where absent pairs are still among the P
        excluded = excluded | has_positive & ~pairs.present
    block = Block(distance, excluded)
    return Contrast((block,), pairs.counts.to(wide), n_own, pairs.column[:, y].T, positive, pairs.present)


def _pooled(centroids: Tensor, counts: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    """Posterior means of all pairs, and the numbers of samples 1 / v whose means would be as certain, or 0."""
    known = counts > 0
    if validate:  # a NaN in one pair would be found in all of them
        require_finite(torch.where(known[..., None], centroids, 0.0).flatten(0, 1), "centroids")
    with in_full_precision(centroids):
        means, variances = pooled_means(centroids, counts)
    return means, torch.where(known.any(), 1 / variances, 0.0)


def _checked(
    z: Tensor, y: Tensor, domain: Tensor, centroids: Tensor, counts: Tensor, precision: Precision | None, validate: bool
) -> tuple[Tensor, Tensor]:
    """Labels and domains as int64, once all arguments are checked against each other."""
    require_tensors(centroids=centroids, counts=counts)
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


def _pairs(centroids: Tensor, precision: Precision | None, counts: Tensor) -> _Pairs:
    """Absent pairs are dropped on the CPU, and masked on a device, where counting them would be a read."""
    flat = counts.reshape(-1)
    known = flat > 0
    kept: Tensor | None = None  # the pairs, if others are dropped
    if on_host(counts) and known.numpy().any():
        kept = torch.from_numpy(known.numpy().nonzero()[0])
        present, n, column = known[kept], flat[kept], (known.cumsum(0) - 1).clamp_min(0)
    else:
        present = known | ~known.any()  # without any pair there is no positive, and the means do not matter
        n, column = torch.where(known, flat, 1), torch.arange(len(flat), device=flat.device)

    def choose(table: Tensor) -> Tensor:
        table = table.flatten(0, 1)
        if kept is not None:
            return table if len(kept) == len(table) else table[kept]
        # Absent pairs, whose statistics may be anything, get the mean of the present ones.
        mask = known.view(-1, *[1] * (table.ndim - 1))
        safe = torch.where(mask, table, 0.0)
        return torch.where(mask, safe, safe.detach().sum(0) / present.sum())

    return _Pairs(choose(centroids), each_part(precision, choose), n, column.view(counts.shape), present)
