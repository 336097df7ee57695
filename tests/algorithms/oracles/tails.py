"""Update rules of the methods for subpopulations and long tails, by loops; see test_parity.py."""

import math

import torch
from tests.algorithms.oracles.hand import cosine, cross_entropy, mean

HPARAMS = {
    "bcl": {"contrast": 0.7},
    "cvar_dro": {"alpha": 0.37},
    "gcl": {"scale": 10.0},
    "jtt": {"first": 0.2, "upweight": 3.0},
    "label_aware_smoothing": {"rare": 0.1},
    "lff": {"q": 0.6},
    "ndcl": {"separation": 0.7, "alignment": 0.6},
    "seesaw": {"mitigation": 0.6, "compensation": 1.5},
    "supcon": {"contrast": 0.7},
    "tally": {"warmup": 0.2, "momentum": 0.6},
    "vs_loss": {"gamma": 0.3},
}
CASES = {
    "group_dro pairs": {"pairs": True},
    "lisa classes": {"within_class": 1.0},
    "lisa domains": {"within_class": 0.0},
    "seesaw without mitigation": {"mitigation": 0.0},
}
DIFFERENCES = [
    ("group_dro pairs", {"absent_too": True}, "in SubpopBench it keeps one"),
    ("lff", {"times_q": True}, "multiply it by q"),
    ("label_aware_smoothing", {"over_all": True}, "spreads ε over all classes"),
    ("lisa classes", {"per_sample": True}, "once per sample"),
    ("bcl", {"of_classifier": True}, "projects the classifier's weights"),
    ("tally", {"exchanged": True}, "exchanges the two"),
]


def samples(m, batch):
    """(features, class, domain) of every sample."""
    return list(zip(m.features(batch.x), batch.y.tolist(), batch.domain.tolist(), strict=True))


def group_dro(m, batch, absent_too=False):
    pairs, errors = m.h.pairs, {}
    for z, c, d in samples(m, batch):
        errors.setdefault((d, c) if pairs else d, []).append(m.error(z, c))
    losses = {group: mean(found) for group, found in errors.items()}
    if not m.memory:
        trained = [(d, c) for d, row in enumerate(m.counts) for c, n in enumerate(row) if n or absent_too]
        m.memory = dict.fromkeys(trained if pairs else [d for d, _ in trained], 1.0)
    q = {g: value * (math.exp(m.h.eta * losses[g].item()) if g in losses else 1.0) for g, value in m.memory.items()}
    m.memory = {g: value / sum(q.values()) for g, value in q.items()}
    return m.step({"group_dro": sum(m.memory[g] * loss for g, loss in losses.items())})


def cvar_dro(m, batch):
    """Samples from the worst on, until their number, the last one's in part, is α of all."""
    errors = sorted((m.error(z, c) for z, c, _ in samples(m, batch)), key=lambda error: -error.item())
    left, loss = m.h.alpha * len(errors), 0.0
    for error in errors:
        taken = min(1.0, left)
        loss, left = loss + taken * error, left - taken
    return m.step({"cvar": loss / (m.h.alpha * len(errors))})


def twin_scores(m, batch):
    hidden = torch.relu(m.linear("twin.layers.1", batch.x.flatten(1)))
    return [m.linear("twin_head", row) for row in hidden]


def jtt(m, batch):
    others, y = twin_scores(m, batch), batch.y.tolist()
    if m.t < round(m.h.first * m.steps):
        return m.step({"first_network": mean(map(cross_entropy, others, y))}, "twin")
    weights = [1.0 if scores.argmax() == c else m.h.upweight for scores, c in zip(others, y, strict=True)]
    errors = [m.error(z, c) for z, c, _ in samples(m, batch)]
    return m.step({"cross_entropy": mean(map(torch.mul, errors, weights))}, "backbone", "head")


def lff(m, batch, times_q=False):
    losses, seconds = [], []
    for (z, c, _), scores in zip(samples(m, batch), twin_scores(m, batch), strict=True):
        own, other = m.error(z, c), cross_entropy(scores, c)
        losses.append(other.item() / (other.item() + own.item() + 1e-8) * own)
        seconds.append((1 - (-other).exp() ** m.h.q) / m.h.q * (m.h.q if times_q else 1.0))
    return m.step({"cross_entropy": mean(losses), "second_network": mean(seconds)})


def lisa(m, batch, per_sample=False):
    y, domain, size = batch.y.tolist(), batch.domain.tolist(), len(batch)
    within_class = torch.rand(()) < m.h.within_class
    chance, losses = torch.rand(size, size), []
    shares = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample((size if per_sample else 1,))
    for i, share in enumerate(shares.expand(size)):
        fits = [
            j for j in range(size) if ((y[i] == y[j]), (domain[i] == domain[j])) == (within_class, not within_class)
        ]
        j = max(fits, key=lambda k: chance[i, k].item()) if fits else i
        z = m.features((share * batch.x[i] + (1 - share) * batch.x[j])[None])[0]
        losses.append(share * m.error(z, y[i]) + (1 - share) * m.error(z, y[j]))
    return m.step({"cross_entropy": mean(losses)})


def with_scores(m, batch, changed):
    """Cross-entropy of scores that are changed for the sample's class and domain."""
    errors = [cross_entropy(changed(m.linear("head", z), c, d), c) for z, c, d in samples(m, batch)]
    return m.step({"cross_entropy": mean(errors)})


def log(n):
    return math.log(n) if n else -math.inf


def vs_loss(m, batch):
    def changed(scores, c, d):
        row = m.counts[d]
        return [(n / max(row)) ** m.h.gamma * s + m.h.tau * log(n) for n, s in zip(row, scores, strict=True)]

    return with_scores(m, batch, changed)


def seesaw(m, batch):
    def changed(scores, c, d):
        chances, row = scores.detach().softmax(0), m.counts[d]
        factors = [
            min(1.0, n / row[c]) ** m.h.mitigation * max(1.0, p / chances[c]) ** m.h.compensation
            for n, p in zip(row, chances.tolist(), strict=True)
        ]
        return [s + log(float(factor)) for s, factor in zip(scores, factors, strict=True)]

    return with_scores(m, batch, changed)


def gcl(m, batch):
    noise, losses = torch.randn(len(batch), len(m.counts[0])), []
    for (z, c, d), row in zip(samples(m, batch), noise.tolist(), strict=True):
        logs = [log(max(n, 1)) for n in m.counts[d]]
        spread = max(logs) - min(logs)
        scores = []
        for k, weight in enumerate(m.p["head.weight"]):
            rarity = (max(logs) - logs[k]) / spread if spread else 0.0
            scores.append(m.h.scale * (cosine(weight, z) - m.h.noise * min(abs(row[k] / 3), 1.0) * rarity))
        losses.append(cross_entropy(scores, c))
    return m.step({"cross_entropy": mean(losses)})


def label_aware_smoothing(m, batch, over_all=False):
    losses = []
    for z, c, d in samples(m, batch):
        present = [n for n in m.counts[d] if n]
        most, least, n = max(present), min(present), m.counts[d][c]
        place = (n - least) / (most - least) if most > least else 1.0
        smoothing = m.h.rare + (m.h.frequent - m.h.rare) * math.sin(math.pi / 2 * place)
        errors = [m.error(z, k) for k in range(len(m.counts[d]))]
        others = mean(error for k, error in enumerate(errors) if over_all or k != c)
        losses.append((1 - smoothing) * errors[c] + smoothing * others)
    return m.step({"cross_entropy": mean(losses)})


def projected(m, z, layers):
    row = m.linear(f"{layers}.2", torch.relu(m.linear(f"{layers}.0", z)))
    return row / row.norm()


def supcon(m, batch):
    found, y = [], batch.y.tolist()
    z = m.features(batch.x)
    u = [projected(m, row, "projection") for row in z]
    for i, own in enumerate(u):
        terms = {j: (own @ other / m.h.temperature).exp() for j, other in enumerate(u) if j != i}
        positive = [j for j in terms if y[j] == y[i]]
        if positive:
            found.append(mean((sum(terms.values()) / terms[j]).log() for j in positive))
    return m.step({"cross_entropy": mean(map(m.error, z, y)), "contrast": m.h.contrast * mean(found)})


def bcl(m, batch, of_classifier=False):
    rows, y = samples(m, batch), batch.y.tolist()
    prototypes = [p / p.norm() for p in m.p["prototypes"]]
    if of_classifier:
        prototypes = [projected(m, weight, "to_prototypes") for weight in m.p["head.weight"]]
    u, of_class = [projected(m, z, "to_prototypes") for z, _, _ in rows], [*y, *range(len(prototypes))]
    found, errors = [], []
    for i, (z, c, d) in enumerate(rows):
        terms = {k: [] for k in range(len(prototypes))}
        for j, other in enumerate([*u, *prototypes]):
            if j != i:
                terms[of_class[j]].append((u[i] @ other / m.h.temperature).exp())
        balanced = sum(mean(of) for of in terms.values())
        found.append(mean((balanced / term).log() for term in terms[c]))
        scores = [s + log(n) for s, n in zip(m.linear("head", z), m.counts[d], strict=True)]
        errors.append(cross_entropy(scores, c))
    return m.step({"cross_entropy": mean(errors), "contrast": m.h.contrast * mean(found)})


def tally(m, batch, exchanged=False):
    def style(z):
        return z.mean(), ((z - z.mean()).square().mean() + 1e-5).sqrt()

    z, y, domain = m.features(batch.x), batch.y.tolist(), batch.domain.tolist()
    before = dict(m.memory)
    kinds = {"content": [], "mean": [], "deviation": []}
    for row, c, d in zip(z, y, domain, strict=True):
        middle, spread = style(row)
        kinds["content"].append((c, (row - middle) / spread))
        kinds["mean"].append((d, middle))
        kinds["deviation"].append((d, spread))
    for kind, found in kinds.items():
        for index in {index for index, _ in found}:
            now = mean(value.detach() for other, value in found if other == index)
            before.setdefault((kind, index), now)
            m.memory[kind, index] = m.h.momentum * before[kind, index] + (1 - m.h.momentum) * now
    if m.t < m.h.warmup * m.steps:
        return m.step({"cross_entropy": mean(map(m.error, z, y))})

    def shares():
        drawn = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample((len(z), 1))[:, 0].tolist()
        return [max(share, 1 - share) for share in drawn]

    others = torch.randperm(len(z)).tolist()
    mixed = []
    for i, (share, other, second) in enumerate(zip(shares(), others, shares(), strict=True)):
        content = share * kinds["content"][i][1] + (1 - share) * before["content", y[i]]
        known = [before[kind, domain[other]] for kind in ("mean", "deviation")]
        middle, spread = (
            second * own + (1 - second) * k
            for own, k in zip(style(z[other]), known[:: -1 if exchanged else 1], strict=True)
        )
        mixed.append(spread * content + middle)
    return m.step({"cross_entropy": mean(map(m.error, mixed, y))})


def ndcl(m, batch):
    z, y, domain = m.features(batch.x), batch.y.tolist(), batch.domain.tolist()
    p = [m.linear("head", row).softmax(0) for row in z]
    errors = [m.error(row, c) for row, c in zip(z, y, strict=True)]
    present, hardest_first = sorted(set(y)), []
    for k in present:
        inside = [i for i, c in enumerate(y) if c == k]
        total = sum(errors[i].detach().exp() for i in inside)
        for i in inside:
            row = [1 / n if n else 0.0 for n in m.counts[domain[i]]]
            weight = row[k] * sum(map(bool, row)) / sum(row)
            hardest_first.append(errors[i].detach().exp() / total * weight * errors[i])
    found = {"cross_entropy": sum(hardest_first) / len(present)}

    share = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample()
    number, mixed = math.ceil(len(y) / len(present)), {}
    for k in present:
        inside = sorted((i for i, c in enumerate(y) if c == k), key=lambda i: p[i][k].item())
        inside = inside[: math.ceil(len(inside) / 2)]
        outside = sorted((i for i, c in enumerate(y) if c != k), key=lambda i: -p[i][k].item())
        x = [
            share * batch.x[inside[j % len(inside)]] + (1 - share) * batch.x[outside[j % len(outside)]]
            for j in range(number)
        ]
        mixed[k] = [m.linear("head", row).softmax(0) for row in m.features(torch.stack(x))]

    of_classes = []
    for k in present:
        inside = [i for i, c in enumerate(y) if c == k]
        of_samples = []
        for i in inside:
            negatives = sum((1 - cosine(p[i], q)).exp() for q in mixed[k])
            positives = sum((1 - cosine(p[i], p[j])).exp() for j in inside if j != i)
            of_samples.append(-(negatives / (negatives + positives)).log())
        of_classes.append(mean(of_samples))
    found["separation"] = m.h.separation * mean(of_classes)

    centres = {}
    for d, c in sorted(set(zip(domain, y, strict=True))):
        centres[d, c] = mean(p[i] for i in range(len(y)) if (domain[i], y[i]) == (d, c))
    several = {c for _, c in centres if sum(other == c for _, other in centres) > 1}
    kept = [(c, centre) for (_, c), centre in centres.items() if c in several]
    by_class = {c: [] for c in several}
    for i, (c, centre) in enumerate(kept):
        others = [(k, cosine(centre, other).exp()) for j, (k, other) in enumerate(kept) if j != i]
        by_class[c].append(-(sum(e for k, e in others if k == c) / sum(e for _, e in others)).log())
    found["alignment"] = m.h.alignment * (mean(map(mean, by_class.values())) if several else 0 * centre.sum())
    return m.step(found)
