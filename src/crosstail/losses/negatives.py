"""Sampled negatives: the denominator of the BoDA loss from a random set of pairs, where there are very many."""

from typing import NamedTuple

import torch
from torch import Tensor

from crosstail.losses.distances import Precision, each_part, matched_distances, pair_distances
from crosstail.losses.host import on_host
from crosstail.pairs import pair_number


class Block(NamedTuple):
    """Samples against some of the pairs: the same Q for all samples, or Q of its own for each."""

    distance: Tensor  # (B, Q)
    excluded: Tensor  # (B, Q), not in the denominator; nothing is, of a sample without a positive
    pairs: Tensor | None = None  # (Q,) or (B, Q), indices of pairs, unless it is all of them
    log_weight: Tensor | float = 0.0  # log of the number of pairs that each stands for

    def pick(self, values: Tensor) -> Tensor:
        """Values (P,) of all pairs, taken for the pairs of the block: (Q,) or (B, Q)."""
        return values if self.pairs is None else values[self.pairs]


def sampled_blocks(
    z: Tensor,
    y: Tensor,
    centroids: Tensor,
    precision: Precision | None,
    present: Tensor,
    positive: Tensor,
    number: int,
    validate: bool,
) -> tuple[Block, Block]:
    r"""K of the P present pairs (D, C), the same for the whole batch, and the pairs of each sample's class.

    The denominator of a sample, with A its positives and S the drawn pairs of other classes, is estimated by

    .. math:: \sum_{p \in A} e^{s_p} + \frac{P}{K} \sum_{p \in S} e^{s_p}

    Every pair is drawn with probability K / P, so this is unbiased (Horvitz and Thompson, 1952).
    """
    known, (num_domains, num_classes) = present.flatten(), present.shape

    def statistics(at: Tensor) -> tuple[Tensor, Precision | None]:
        there = known[at]
        clean = on_host(there) and there.numpy().all()

        def choose(table: Tensor) -> Tensor:
            rows = table.flatten(0, 1).index_select(0, at)
            # The statistics of an absent pair may be anything.
            return rows if clean else torch.where(there.view(-1, *[1] * (rows.ndim - 1)), rows, 0.0)

        return choose(centroids), each_part(precision, choose)

    keys = torch.rand(len(known)).to(y.device)  # from the CPU: the same on any device and in every process
    # Without replacement; if there are too few, absent pairs fill up.
    drawn = torch.where(known, keys, -1.0).topk(number, sorted=False).indices
    alike = pair_number(y[:, None], torch.arange(num_domains, device=y.device), num_classes)  # (B, D)
    place = drawn.new_full((len(known),), number)
    place[drawn] = torch.arange(number, device=y.device)
    has_positive = positive.any(1, keepdim=True)
    # Drawn pairs of the sample's class would count twice. Those not drawn are written to a last column, which is cut.
    excluded = torch.zeros(len(y), number + 1, dtype=torch.bool, device=y.device)
    excluded = excluded.scatter(1, place[alike], has_positive.expand_as(alike))[:, :number]
    if not on_host(y):
        excluded = excluded | has_positive & ~known[drawn]
    far = pair_distances(z, *statistics(drawn), validate=validate)
    near = matched_distances(z, *statistics(alike.flatten()), validate=validate)
    log_weight = known.sum().clamp_min(1).to(far.dtype).log() - known[drawn].sum().clamp_min(1).to(far.dtype).log()
    return Block(far, excluded, drawn, log_weight), Block(near, ~positive & has_positive, alike)
