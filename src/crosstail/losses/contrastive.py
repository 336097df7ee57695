"""Losses of the similarities between the samples of a batch: vectors (B, F) · y (B,) · domain (B,)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.losses.host import in_full_precision, occurrences
from crosstail.pairs import pair_number


def supcon_loss(z: Tensor, y: Tensor, *, temperature: float = 0.1) -> Tensor:
    """Find the samples of the same class among all others, by cosines (Khosla et al., 2020).

    With vectors u of length 1, −mean over p of the class of log(exp(u · u_p / τ) / Σ_{a ≠ self} exp(u · u_a / τ)),
    averaged over samples that are not alone in their class.
    """
    others = ~torch.eye(len(y), dtype=torch.bool, device=z.device)
    alike = others & (y[:, None] == y)
    with in_full_precision(z):
        u = F.normalize(z.to(torch.promote_types(z.dtype, torch.float32)))
        similarity = u @ u.mT / temperature
        error = similarity.masked_fill(~others, -torch.inf).logsumexp(1, keepdim=True) - similarity
    each = (error * alike).sum(1) / alike.sum(1).clamp_min(1)
    return each.sum() / alike.any(1).sum().clamp_min(1)


def balanced_contrastive_loss(z: Tensor, y: Tensor, prototypes: Tensor, *, temperature: float = 0.1) -> Tensor:
    """SupCon in which all classes have the same weight (Zhu et al., 2022), with a prototype (C, F) of every class.

    A prototype is one more sample, and the denominator has the mean instead of the sum of a class's terms.
    """
    size, every = len(y), torch.cat([y, torch.arange(len(prototypes), device=z.device)])
    others = ~torch.eye(size, len(every), dtype=torch.bool, device=z.device)
    alike = others & (y[:, None] == every)
    with_prototype = occurrences(y, len(prototypes)) + 1
    number = torch.where(alike, alike.sum(1, keepdim=True), with_prototype[every])  # without the sample itself
    with in_full_precision(z):
        u = F.normalize(torch.cat([z, prototypes]))
        similarity = u[:size] @ u.mT / temperature
        error = (similarity - number.log()).masked_fill(~others, -torch.inf).logsumexp(1, keepdim=True) - similarity
    return ((error * alike).sum(1) / alike.sum(1)).mean()


def cad_loss(z: Tensor, y: Tensor, domain: Tensor, *, temperature: float = 0.1, conditional: bool = False) -> Tensor:
    """−log of other domains' probability under a softmax of z · z′ / τ over the other samples (Ruan et al., 2022).

    If `conditional` on the class, the softmax is over the other samples of the class (CondCAD).
    """
    others = ~torch.eye(len(y), dtype=torch.bool, device=z.device)
    alike = others & (y[:, None] == y)
    among = alike if conditional else others
    positive = among & (domain[:, None] != domain)
    rows = (positive if conditional else alike).any(1).nonzero()[:, 0]
    with in_full_precision(z):
        similarity = (z @ z.mT / temperature)[rows]
        terms = [similarity.masked_fill(~mask[rows], -torch.inf).logsumexp(1) for mask in (among, positive)]
        return (terms[0] - terms[1]).sum() / max(len(rows), 1)


def separation_loss(p: Tensor, y: Tensor, mixed: Tensor, mixed_y: Tensor) -> Tensor:
    """−log of the share of mixtures with other classes in a softmax of 1 − cos (Cao et al., 2026).

    It is among them and the samples of the class, and averaged over classes. p (B, C) and `mixed` (M, C) are
    probabilities, of samples and of mixtures, y and `mixed_y` their classes.
    """
    u, v = F.normalize(p), F.normalize(mixed)
    negatives = (1 - u @ v.mT).masked_fill(y[:, None] != mixed_y, -torch.inf).logsumexp(1)
    others = (y[:, None] == y) & ~torch.eye(len(y), dtype=torch.bool, device=p.device)
    positives = (1 - u @ u.mT).masked_fill(~others, -torch.inf)
    each = torch.cat([positives, negatives[:, None]], 1).logsumexp(1) - negatives
    return (each / (y[:, None] == y).sum(1)).sum() / classes_in(y, p)


def alignment_loss(p: Tensor, y: Tensor, domain: Tensor) -> Tensor:
    """Over mean probabilities of pairs, −log of the share of the same class in a softmax of cos (Cao et al., 2026).

    The mean over classes, of which there are several means; 0 if there is none. p (B, C) are probabilities.
    """
    pairs, index, size = torch.unique(pair_number(y, domain, p.shape[1]), return_inverse=True, return_counts=True)
    total = torch.zeros(len(pairs), p.shape[1], dtype=p.dtype, device=p.device).index_add(0, index, p)
    number = (pairs[:, None] % p.shape[1] == pairs % p.shape[1]).sum(1)
    kept = (number > 1).nonzero()[:, 0]
    means, y, number = (total / size[:, None])[kept], pairs[kept] % p.shape[1], number[kept]
    if not len(kept):
        return 0 * means.sum()
    u = F.normalize(means)
    cosines = (u @ u.mT).masked_fill(torch.eye(len(y), dtype=torch.bool, device=y.device), -torch.inf)
    alike = cosines.masked_fill(y[:, None] != y, -torch.inf)
    each = cosines.logsumexp(1) - alike.logsumexp(1)
    return (each / number).sum() / classes_in(y, p)


def classes_in(y: Tensor, scores: Tensor) -> Tensor:
    """The number of classes among labels (B,), given scores (…, C); `torch.unique` would have to be read."""
    return (occurrences(y, scores.shape[-1]) > 0).sum()
