"""Write docs/results/negatives.md: bias and spread of the BoDA loss with sampled negatives, against the exact loss.

python -m studies.sampled_negatives [--draws 200]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from crosstail.losses import boda_loss, rescaled_boda_loss

PAGE = Path(__file__).parents[1] / "docs" / "results" / "negatives.md"
DOMAINS, CLASSES, FEATURES, BATCH = 20, 500, 64, 256
NUMBERS = (64, 256, 1024, 4096)
FORMS: dict[str, tuple[Callable[..., Tensor], dict[str, Any]]] = {
    "equation (3), ν = 1": (boda_loss, {"nu": 1.0}),
    "rescaled, ν = 1": (rescaled_boda_loss, {"nu": 1.0}),
}


def problem() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Long-tailed counts, and features that are a class, a domain and noise; a batch with equally many per domain."""
    torch.manual_seed(0)
    of_class, of_domain = 0.3 * torch.randn(CLASSES, FEATURES), 0.2 * torch.randn(DOMAINS, 1, FEATURES)
    centroids = of_class + of_domain + 0.1 * torch.randn(DOMAINS, CLASSES, FEATURES)
    rank = torch.stack([torch.randperm(CLASSES) for _ in range(DOMAINS)])
    counts = (200 * (1 + rank.float()) ** -0.7).ceil()
    domain = torch.arange(BATCH) % DOMAINS
    y = torch.cat([torch.multinomial(counts[d], 1) for d in domain.tolist()])
    z = centroids[domain, y] + 0.2 * torch.randn(BATCH, FEATURES)
    return z.requires_grad_(), y, domain, centroids, counts


def errors(loss: Callable[..., Tensor], options: dict[str, Any], draws: int) -> list[list[str]]:
    """One row per number of negatives: error of the value and of the gradient, relative to the exact ones."""
    given = problem()

    def value_and_gradient(**also: Any) -> tuple[Tensor, Tensor]:
        value = loss(*given, **options, **also)
        return value.detach(), torch.autograd.grad(value, given[0])[0].flatten()

    value, gradient = value_and_gradient()
    rows = []
    for number in NUMBERS:
        found = [value_and_gradient(negatives=number) for _ in range(draws)]
        values, gradients = torch.stack([v for v, _ in found]), torch.stack([g for _, g in found])
        spread = values.std()
        # The squared length of the mean error includes the noise of a mean over the draws, which is known.
        noise = gradients.var(0).sum()
        bias = ((gradients.mean(0) - gradient).square().sum() - noise / draws).clamp_min(0).sqrt()
        cosine = torch.cosine_similarity(gradients, gradient[None]).mean()
        rows.append(
            [
                f"{number:,}",
                f"{(values.mean() - value) / value:+.3%} ± {spread / draws**0.5 / value:.3%}",
                f"{spread / value:.3%}",
                f"{bias / gradient.norm():.2%}",
                f"{noise.sqrt() / gradient.norm():.1%}",
                f"{cosine:.4f}",
            ]
        )
    return rows


def designs(draws: int, number: int = 1024) -> list[list[str]]:
    """Relative standard deviation of the denominators, the median over the batch, of four ways to draw."""
    z, y, domain, centroids, counts = problem()
    distance = torch.cdist(z.detach(), centroids.flatten(0, 1)).double()
    n_pair, n_own = counts.flatten().double(), counts[domain, y].double()[:, None]
    pair_class = torch.arange(DOMAINS * CLASSES) % CLASSES
    terms = {
        "equation (3), ν = 1": torch.exp(-n_pair / n_own * distance / n_own),
        "equation (2), ν = 0": torch.exp(-distance / n_own),
        "equation (1), no counts": torch.exp(-distance),
        "rescaled, ν = 1": n_pair * torch.exp(-distance / distance.mean()),
    }
    stratum = torch.arange(DOMAINS * CLASSES).view(DOMAINS, CLASSES)

    def uniform() -> tuple[Tensor, Tensor]:
        return torch.randperm(DOMAINS * CLASSES)[:number], torch.tensor(DOMAINS * CLASSES / number)

    def by_domain() -> tuple[Tensor, Tensor]:
        each = number // DOMAINS
        drawn = torch.cat([row[torch.randperm(CLASSES)[:each]] for row in stratum])
        return drawn, torch.tensor(CLASSES / each)

    def by_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
        drawn = torch.multinomial(weight, number, replacement=True)
        return drawn, weight.sum() / (number * weight[drawn])

    ways = {
        "uniform": uniform,
        "stratified by domain": by_domain,
        "proportional to N": lambda: by_weight(n_pair),
        "proportional to 1 / N": lambda: by_weight(1 / n_pair),
    }
    rows = []
    for name, term in terms.items():
        others = torch.where(pair_class == y[:, None], 0.0, term)
        positives = (term - others).sum(1) - term.gather(1, (domain * CLASSES + y)[:, None])[:, 0]
        exact = others.sum(1) + positives
        cells = []
        for way in ways.values():
            found = []
            for _ in range(draws):
                drawn, weight = way()
                found.append((others[:, drawn] * weight).sum(1) + positives)
            cells.append(f"{(torch.stack(found).std(0) / exact).median():.2%}")
        rows.append([name, *cells])
    return [["", *ways], *rows]


def table(rows: list[list[str]]) -> list[str]:
    """Markdown, with the first row as the header."""
    head, *rest = rows
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rest)]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="random draws per row")
    draws = parser.parse_args().draws
    head = ["K", "bias of the value", "its SD", "bias of the gradient", "its SD", "mean cosine"]
    lines = [
        "# Sampled negatives",
        "",
        "`boda_loss(..., negatives=K)` against the exact loss, on synthetic features:",
        f"{DOMAINS} domains × {CLASSES} classes = {DOMAINS * CLASSES:,} pairs with long-tailed counts,",
        f"{FEATURES} features, one batch of {BATCH} samples, {draws} draws per row.",
        "Written by `python -m studies.sampled_negatives`.",
        "Design: [which pairs stand for the denominator](../decisions/sampled-negatives.md). Time: [speed](speed.md).",
        "",
        "Everything is relative to the exact value, or to the length of the exact gradient. The estimated",
        "denominator is unbiased, but its logarithm is too small on average, by about half its relative variance,",
        "and so is the loss. *Bias of the gradient*: length of the mean error, less the noise of the mean; *SD*:",
        "length of the standard deviation; *cosine*: between one draw's gradient and the exact one.",
        "",
    ]
    for name, (loss, options) in FORMS.items():
        lines += [f"## {name[0].upper()}{name[1:]}", "", *table([head, *errors(loss, options, draws)]), ""]
    lines += [
        "## Ways to draw",
        "",
        "Relative standard deviation of a sample's denominator, the median over the batch, with K = 1,024.",
        "",
        *table(designs(draws)),
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
