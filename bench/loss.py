"""`boda_loss` at DomainNet's shape: 6 domains, 345 classes, 2,048 features, batches of 24 per domain."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bench._memory import usage_of
from bench._rows import Row
from bench._timing import interleave
from crosstail.losses import BoDALoss, boda_loss, rescaled_boda_loss

BATCH, DOMAINS, CLASSES, FEATURES = 144, 6, 345, 2048
FORMS: dict[str, dict[str, Any]] = {
    "BoDA-M, diagonal": {"covariance": "diagonal"},
    "BoDA-M, low_rank": {"covariance": "low_rank"},
    "BoDA, pooled": {"pooled": True},
}


def batch() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    z = torch.randn(BATCH, FEATURES, requires_grad=True)
    return z, torch.randint(CLASSES, (BATCH,)), torch.arange(BATCH) % DOMAINS


def counts() -> Tensor:
    return torch.randint(1, 500, (DOMAINS, CLASSES), generator=torch.Generator().manual_seed(1))


def plain_boda_loss(z: Tensor, y: Tensor, domain: Tensor, centroids: Tensor, counts: Tensor) -> Tensor:
    """Equation (3) in its direct form: `torch.cdist` and masks for the positives and the sample's own pair."""
    num_domains, num_classes, _ = centroids.shape
    pair_domain = torch.arange(num_domains).repeat_interleave(num_classes)
    pair_class = torch.arange(num_classes).repeat(num_domains)
    same_class = pair_class == y[:, None]  # (B, P)
    own = same_class & (pair_domain == domain[:, None])
    positive = same_class & ~own
    n_own, n_pair = counts[domain, y].float()[:, None], counts.flatten().float()
    distance = torch.cdist(z, centroids.flatten(0, 1))
    similarity = torch.exp(-(n_pair / n_own) * distance / n_own)
    denominator = (similarity * ~own).sum(1, keepdim=True)
    return -(torch.log(similarity / denominator) * positive).sum(1).div(num_domains - 1).mean()


def negatives_ratio() -> tuple[float, float]:
    """Seconds of a step of the module with 4,096 negatives of 100,000 pairs, and with 4,096 pairs in all."""

    def step(domains: int, classes: int, drawn: int) -> Callable[[], None]:
        generator = torch.Generator().manual_seed(0)
        counts = torch.randint(1, 500, (domains, classes), generator=generator)
        criterion = BoDALoss(domains, classes, 512, counts, negatives=drawn, validate=False)
        pair = torch.arange(domains * classes)
        means = torch.randn(len(pair), 512, generator=generator)
        criterion.statistics.update(means, pair % classes, pair // classes)  # every pair has been seen
        z = torch.randn(256, 512, requires_grad=True)
        y, domain = torch.randint(classes, (256,), generator=generator), torch.arange(256) % domains
        return lambda: criterion(z, y, domain).backward()

    seconds = interleave({"sampled": step(20, 5_000, 4_096), "exact": step(16, 256, 0)}, repeats=25)
    return seconds["sampled"], seconds["exact"]


def compiled_row(loss: Callable[..., Tensor], step: Callable[..., None]) -> Row:
    """A step of a loss in one compiled graph beside the same step without the compiler.

    The graph may not look at values, as eager mode does to see that float32 is enough: it computes in float64.
    """
    whole = torch.compile(partial(loss, validate=False), fullgraph=True)
    seconds = interleave({"compiled": lambda: step(whole), "eager": lambda: step(loss)}, repeats=25)
    ratio = seconds["compiled"] / seconds["eager"]
    return Row(f"{loss.__name__}, compiled", seconds["compiled"], "without torch.compile", ratio, 2.6)


def whole_step(form: str) -> None:
    """The work of a training step: update the statistics from the batch, invert or pool them, loss, gradient."""
    criterion = BoDALoss(DOMAINS, CLASSES, FEATURES, counts(), **FORMS[form])
    for _ in range(2):
        criterion(*batch()).backward()


def run() -> list[Row]:
    z, y, domain = batch()
    table = counts()
    centroids = torch.randn(DOMAINS, CLASSES, FEATURES)
    flat = centroids.flatten(0, 1)
    gradient = torch.randn(BATCH, len(flat))

    def step(loss: Callable[..., Tensor], **options: Any) -> None:
        z.grad = None
        loss(z, y, domain, centroids, table, **options).backward()

    @torch.no_grad()
    def products() -> None:
        z @ flat.T
        gradient @ flat

    # Apart from the products: a function that runs after `plain` pays for the memory that `plain` has just freed.
    losses = {"boda_loss": lambda: step(boda_loss), "rescaled_boda_loss": lambda: step(rescaled_boda_loss)}
    floor = interleave({**losses, "products": products}, repeats=25)
    peer = interleave({**losses, "plain": lambda: step(plain_boda_loss)}, repeats=25)
    rows = []
    for name, most in (("boda_loss", 1.25), ("rescaled_boda_loss", 1.4)):
        rows.append(Row(name, floor[name], "its two matrix products", floor[name] / floor["products"], most))
        rows.append(Row(name, peer[name], "cdist and masks", peer["plain"] / peer[name], 1.8, "at least"))
    rows += [compiled_row(loss, step) for loss in (boda_loss, rescaled_boda_loss)]
    sampled, exact = negatives_ratio()
    rows.append(Row("4,096 negatives of 100,000 pairs", sampled, "4,096 pairs, exact", sampled / exact, 1.3))
    for form in FORMS:
        usage = usage_of("bench.loss", "whole_step", form)
        rows.append(Row(form, usage.resident, "(peak of a step)", None, 2048, unit="MiB"))
    return rows
