"""Update rules of DA, BoDA and BoDA-M by loops, from equations (1) and (3) as printed; see test_parity.py."""

from tests.algorithms.oracles.hand import mean

HPARAMS = {
    "boda": {"nu": 0.7, "weight": 0.3, "window": 4},
    "boda_m": {"nu": 0.7, "weight": 0.3, "window": 4},
    "da": {"weight": 0.3, "window": 4},
}
CASES = {f"{name} warm-up": {"warmup": 0.4} for name in HPARAMS}
DIFFERENCES = [
    *((name, {"summed": True}, "where the equation is a sum") for name in HPARAMS),
    *((f"{name} warm-up", {"from_the_start": True}, "after a warm-up") for name in HPARAMS),
]


def remember(m, pairs, z):
    """{pair: (samples, mean, variance)}; the past counts as one sample less than the pair has, or the window."""
    for d, c in set(pairs):
        rows = [row.detach() for row, pair in zip(z, pairs, strict=True) if pair == (d, c)]
        seen, middle, variance = m.memory.get((d, c), (0, 0.0, 0.0))
        share = len(rows) / (min(seen, m.counts[d][c] - 1, m.h.window - 1) + len(rows))
        spread = mean((row - mean(rows)) ** 2 for row in rows)
        between = share * (1 - share) * (mean(rows) - middle) ** 2
        variance = (1 - share) * variance + share * spread + between
        m.memory[d, c] = seen + len(rows), (1 - share) * middle + share * mean(rows), variance


def aligned(m, batch, factor, precision=lambda m: dict.fromkeys(m.memory, 1.0), summed=False, from_the_start=False):
    """Cross-entropy + ω · the mean of the samples' losses; `factor` multiplies the distance between two pairs."""
    z, y = m.features(batch.x), batch.y.tolist()
    pairs = list(zip(batch.domain.tolist(), y, strict=True))
    remember(m, pairs, z)
    weights, losses = precision(m), []
    for row, own in zip(z, pairs, strict=True):
        others = {p: (weights[p] * (row - middle) ** 2).sum().sqrt() for p, (_, middle, _) in m.memory.items()}
        scores = {p: -factor(m, own, p) * distance for p, distance in others.items() if p != own}
        denominator = sum(score.exp() for score in scores.values()).log()
        positives = [denominator - score for (_, c), score in scores.items() if c == own[1]]
        losses += [mean(positives)] if positives else []
    weight = m.h.weight if from_the_start or m.t >= round(m.h.warmup * m.steps) else 0.0
    term = weight * (sum(losses) if summed else mean(losses))
    return m.step({"cross_entropy": mean(map(m.error, z, y)), "alignment": term})


def calibrated(m, own, other):
    """λ / N_i."""
    n, n_other = (m.counts[d][c] for d, c in (own, other))
    return (n_other / n) ** m.h.nu / n


def shrunk(m):
    """1 / ((n v + 10 v̄) / (n + 10)), n the samples that a pair remembers, v̄ their mean variance over all pairs."""
    n = {(d, c): min(seen, m.counts[d][c], m.h.window) for (d, c), (seen, _, _) in m.memory.items()}
    common = sum(n[pair] * variance for pair, (_, _, variance) in m.memory.items()) / sum(n.values())
    common = common.clamp_min(1e-3 * common.mean())
    return {p: (n[p] + 10) / (n[p] * variance + 10 * common) for p, (_, _, variance) in m.memory.items()}


def da(m, batch, **options):
    return aligned(m, batch, lambda m, own, other: 1.0, **options)


def boda(m, batch, **options):
    return aligned(m, batch, calibrated, **options)


def boda_m(m, batch, **options):
    return aligned(m, batch, calibrated, shrunk, **options)
