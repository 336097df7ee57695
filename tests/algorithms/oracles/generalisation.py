"""Update rules of the methods for domain generalisation, by loops; see test_parity.py."""

import math

import torch
from tests.algorithms.oracles.hand import annealed, cross_entropy, invariance_penalty, mean, risks

HPARAMS = {
    "adrmx": {"adversary": 0.7, "discriminator_lr": 0.03, "domain": 0.6, "remix": 0.8, "contrast": 0.4},
    "and_mask": {"tau": 0.6},
    "cad": {"bottleneck": 0.7},
    "causirl_coral": {"gamma": 0.7},
    "causirl_mmd": {"gamma": 0.7},
    "cond_cad": {"bottleneck": 0.7},
    "eqrm": {"anneal": 0.2, "late_lr": 0.5},
    "erm_plus_plus": {"head_first": 0.4},
    "fishr": {"anneal": 0.2, "penalty": 3.0, "ema": 0.8},
    "ib_erm": {"anneal": 0.2, "bottleneck": 0.7},
    "ib_irm": {"anneal": 0.2, "bottleneck": 0.7, "penalty": 20.0},
    "iga": {"penalty": 0.7},
    "miro": {"information": 0.7},
    "mixstyle": {"probability": 0.8, "alpha": 0.7},
    "rdm": {"anneal": 0.2, "variance": 0.4},
    "ridg": {"penalty": 0.3, "momentum": 0.4},
    "sagm": {"rho": 0.3, "alpha": 0.1},
    "sam": {"rho": 0.3},
    "sand_mask": {"tau": 0.3, "steepness": 0.001},
    "sd": {"penalty": 0.7},
    "selfreg": {"alpha": 2.0, "feature_weight": 0.8},
    "transfer": {"radius": 0.02, "ascent_lr": 0.05, "ascent_steps": 3},
    "trm": {"alignment": 0.5, "eta": 0.3, "start": 0.2},
    "urm": {"adversary": 0.7, "discriminator_lr": 0.03},
    "vrex": {"anneal": 0.2, "penalty": 3.0},
}
DIFFERENCES = [
    ("eqrm", {"ends": True}, "ends of its bisection"),
    ("rdm", {"unbiased": True}, "one less"),
    ("sand_mask", {"always_masked": True}, "always 0"),
    ("ridg", {"products": True}, "averages the products"),
    ("iga", {"averaged": True}, "paper averages"),
    ("transfer", {"two_steps": True}, "a step per term"),
    ("sagm", {"summed": True}, "their sum"),
    ("adrmx", {"softened": True}, "adds 1e-5"),
    ("selfreg", {"random_projection": True}, "stays random"),
    ("trm", {"overwritten": True}, "overwritten"),
]


def variance(values, less=0):
    """Mean squared difference from the mean; `less` is 1 for the unbiased estimate."""
    values = list(values)
    return sum((value - mean(values)) ** 2 for value in values) / (len(values) - less)


def errors(m, batch):
    return mean(map(m.error, m.features(batch.x), batch.y))


def with_penalty(m, batch, **penalties):
    return m.step({"cross_entropy": mean(risks(m, batch)), **penalties})


def vrex(m, batch):
    return with_penalty(m, batch, vrex=(m.h.penalty if annealed(m) else 1.0) * variance(risks(m, batch)))


def eqrm(m, batch, ends=False):
    of_domains = torch.stack(risks(m, batch))
    if not annealed(m):
        return m.step({"cross_entropy": of_domains.mean()})

    def share_below(q, values, width):
        return mean(0.5 * (1 + torch.erf((q - value) / width / 2**0.5)) for value in values)

    def bandwidth(values):
        return 1.06 * (variance(values, less=1) + 1e-12) ** 0.5 / len(values) ** 0.2

    with torch.no_grad():
        low, high = of_domains.min() - 9 * bandwidth(of_domains), of_domains.max() + 9 * bandwidth(of_domains)
        for _ in range(100):
            q = (low + high) / 2
            below = share_below(q, of_domains, bandwidth(of_domains)) < m.h.quantile
            low, high = (q, high) if below else (low, q)
    if ends:  # of the interval in which the bisection begins
        shift = bandwidth(of_domains) * math.sqrt(2) * torch.erfinv(torch.tensor(2 * m.h.quantile - 1))
        first, last = of_domains.min() + shift, of_domains.max() + shift
        place = ((q - first) / (last - first)).detach()
        return m.step({"eqrm": first + place * (last - first)}, lr=m.h.late_lr * m.h.lr)
    # F(q, R) = α all along, so dq = −∂F/∂R dR / ∂F/∂q.
    point, values = q.clone().requires_grad_(), of_domains.detach().requires_grad_()
    by_q, by_values = torch.autograd.grad(share_below(point, values, bandwidth(values)), (point, values))
    moved = (-by_values / by_q) @ (of_domains - of_domains.detach())
    return m.step({"eqrm": q + moved}, lr=m.h.late_lr * m.h.lr)


def fishr(m, batch):
    parameters = [m.p["head.weight"], m.p["head.bias"]]
    of_domains = []
    for d, z, y in m.parts(batch):
        gradients = [
            torch.autograd.grad(m.error(row, c), parameters, create_graph=True) for row, c in zip(z, y, strict=True)
        ]
        spread = variance(torch.cat([g.flatten() for g in gradient]) for gradient in gradients)
        moved = m.h.ema * m.memory.get(d, 0.0) + (1 - m.h.ema) * spread
        m.memory[d] = moved.detach()
        of_domains.append(moved / (1 - m.h.ema))
    weight = m.h.penalty if annealed(m) else 0.0
    return with_penalty(m, batch, fishr=weight * variance(of_domains).mean())


def kernel(a, b, rates):
    """Mean over pairs of points of the sum of Gaussian kernels."""
    return mean((-rates * (u - v).square().sum()).exp().sum() for u in a for v in b)


def discrepancy(a, b, rates):
    return kernel(a, a, rates) + kernel(b, b, rates) - 2 * kernel(a, b, rates)


def rdm(m, batch, unbiased=False):
    of_domains = [list(map(m.error, z, y)) for _, z, y in m.parts(batch)]
    worst, every = max(of_domains, key=lambda found: mean(found).item()), [e for found in of_domains for e in found]
    late, matching = annealed(m), discrepancy(worst, every, torch.tensor([10.0**k for k in range(-4, 4)]))
    spread = variance(worst, less=unbiased) + variance(every, less=unbiased)
    terms = {"rdm": late * m.h.penalty * matching, "variance": late * m.h.variance * spread}
    return m.step({"cross_entropy": mean(every), **terms}, lr=m.h.lr * (m.h.late_lr if late else 1))


def sd(m, batch):
    scores = [score for row in m.features(batch.x) for score in m.linear("head", row)]
    return with_penalty(m, batch, sd=m.h.penalty * mean(score**2 for score in scores))


def bottleneck(m, batch):
    return mean(variance(z, less=1).mean() for _, z, _ in m.parts(batch))


def ib_erm(m, batch):
    return with_penalty(m, batch, bottleneck=(m.h.bottleneck if annealed(m) else 0.0) * bottleneck(m, batch))


def ib_irm(m, batch):
    weights = (m.h.penalty, m.h.bottleneck) if annealed(m) else (1.0, 0.0)
    irm = weights[0] * invariance_penalty(m, batch)
    return with_penalty(m, batch, irm=irm, bottleneck=weights[1] * bottleneck(m, batch))


def with_mixtures(m, batch, distance):
    parts = m.parts(batch)
    cuts = torch.randint(len(parts[0][1]), (len(parts), 1))[:, 0].tolist()
    first = [row for (_, z, _), cut in zip(parts, cuts, strict=True) for row in z[:cut]]
    second = [row for (_, z, _), cut in zip(parts, cuts, strict=True) for row in z[cut:]]
    enough = min(len(first), len(second)) > 1
    return with_penalty(m, batch, causirl=m.h.gamma * distance(first, second) if enough else torch.zeros(()))


def causirl_mmd(m, batch):
    return with_mixtures(m, batch, lambda a, b: discrepancy(a, b, torch.tensor([10.0**k for k in range(-3, 4)])))


def causirl_coral(m, batch):
    def covariance(rows):
        return sum(torch.outer(row - mean(rows), row - mean(rows)) for row in rows) / (len(rows) - 1)

    def distance(a, b):
        return (mean(a) - mean(b)).square().mean() + (covariance(a) - covariance(b)).square().mean()

    return with_mixtures(m, batch, distance)


def percentile(values, share):
    """Between the two neighbours in the order of the values."""
    ordered, place = sorted(value.item() for value in values), share * (len(values) - 1)
    low = math.floor(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(values) - 1)] - ordered[low])


def rsc(m, batch):
    z, masks, drops = m.features(batch.x), [], []
    for row, c in zip(z, batch.y.tolist(), strict=True):
        point = row.detach().requires_grad_()
        (slope,) = torch.autograd.grad(m.linear("head", point)[c], point)
        limit = percentile(slope, 1 - m.h.features)
        masks.append(torch.tensor([float(value < limit) for value in slope]))
        full, muted = ((-m.error(values, c)).exp() for values in (row, row * masks[-1]))
        drops.append((full - muted).detach())
    limit = percentile(drops, 1 - m.h.samples)
    shown = [row * mask if drop >= limit else row for row, mask, drop in zip(z, masks, drops, strict=True)]
    return m.step({"cross_entropy": mean(map(m.error, shown, batch.y))})


def masked(m, batch, mask_of):
    """The mean gradient times a mask, over the mean of the mask, for each tensor of weights."""
    of_domains = risks(m, batch)
    gradients = [m.gradients(risk) for risk in of_domains]
    combined = {}
    for name in m.p:
        each = [gradient[name] for gradient in gradients]
        mask = mask_of(each, mean(g.sign() for g in each).abs())
        combined[name] = mask * mean(each) / (1e-10 + mask.mean())
    m.adam(combined)
    return {"cross_entropy": mean(of_domains)}


def and_mask(m, batch):
    return masked(m, batch, lambda each, agreement: (agreement >= m.h.tau).double())


def sand_mask(m, batch, always_masked=False):
    def mask(each, agreement):
        certainty = 1 / variance(each, less=1).clamp_min(1e-300)
        return torch.tanh(m.h.steepness * certainty * (agreement - (1 if always_masked else m.h.tau))).clamp_min(0)

    return masked(m, batch, mask)


def iga(m, batch, averaged=False):
    of_domains, parameters = risks(m, batch), list(m.p.values())
    gradients = [
        torch.cat([g.flatten() for g in torch.autograd.grad(risk, parameters, create_graph=True)])
        for risk in of_domains
    ]
    penalty = sum((g - mean(gradients)).square().sum() for g in gradients) / (len(gradients) if averaged else 1)
    return m.step({"cross_entropy": mean(of_domains), "iga": m.h.penalty * penalty})


def sam(m, batch, first=0.0, second=1.0, alpha=0.0):
    """Of the gradients at θ and at θ + (ρ / ‖g‖ − α) g, with two weights."""
    loss = errors(m, batch)
    g = m.gradients(loss)
    scale = m.h.rho / (sum(value.square().sum() for value in g.values()) ** 0.5 + 1e-12) - alpha
    moved = {name: (p + scale * g[name]).detach().requires_grad_() for name, p in m.p.items()}
    after = mean(m.error(row, c, moved) for row, c in zip(m.features(batch.x, moved), batch.y, strict=True))
    other = dict(zip(moved, torch.autograd.grad(after, list(moved.values())), strict=True))
    m.adam({name: first * g[name] + second * other[name] for name in g})
    return {"cross_entropy": loss, "perturbed": after}


def sagm(m, batch, summed=False):
    share = 1.0 if summed else 0.5
    return sam(m, batch, first=share, second=share, alpha=m.h.alpha)


def partners(y):
    """In each class, the samples in order are replaced by the samples in random order."""
    order, found = torch.randperm(len(y)).tolist(), {}
    for c in set(y):
        found |= zip([i for i in range(len(y)) if y[i] == c], [i for i in order if y[i] == c], strict=True)
    return [found[i] for i in range(len(y))]


def selfreg(m, batch, random_projection=False):
    z, y = m.features(batch.x), batch.y.tolist()

    def normalised(layer, rows):
        middle, spread = mean(rows), variance(rows)
        weight, bias = m.p[f"{layer}.weight"], m.p[f"{layer}.bias"]
        return [(row - middle) / (spread + 1e-5) ** 0.5 * weight + bias for row in rows]

    projected = list(z)
    for first in (0, 3, 6):
        projected = normalised(f"predictor.{first + 1}", [m.p[f"predictor.{first}.weight"] @ row for row in projected])
        projected = [torch.relu(row) if first < 6 else row for row in projected]
    scores = [m.linear("head", row) for row in z]
    share = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample()

    first, second = partners(y), partners(y)

    def distance(features, of_scores):
        return mean(
            (a - b).square().mean() for a, b in zip(scores, of_scores, strict=True)
        ) + m.h.feature_weight * mean((a - b).square().mean() for a, b in zip(z, features, strict=True))

    def mixed(rows):
        return [share * rows[i] + (1 - share) * rows[j] for i, j in zip(first, second, strict=True)]

    loss = mean(map(m.error, z, y))
    scale = min(loss.item(), 1.0)
    individual = scale * share * distance([projected[i] for i in first], [scores[i] for i in first])
    mixture = scale * (1 - share) * distance(mixed(projected), mixed(scores))
    trained = ("backbone", "head") if random_projection else ()
    return m.step({"cross_entropy": loss, "individual": individual, "mixed": mixture}, *trained)


def cad(m, batch, conditional=False):
    z, y, domain, found = m.features(batch.x), batch.y.tolist(), batch.domain.tolist(), []
    for i in range(len(y)):
        others = [j for j in range(len(y)) if j != i and (y[j] == y[i] or not conditional)]
        away = [j for j in others if domain[j] != domain[i]]
        if away and any(y[j] == y[i] for j in others):
            similar = {j: (z[i] @ z[j] / m.h.temperature).exp() for j in others}
            found.append(-(sum(similar[j] for j in away) / sum(similar.values())).log())
    return with_penalty(m, batch, bottleneck=m.h.bottleneck * m.h.temperature / 0.07 * mean(found))


def cond_cad(m, batch):
    return cad(m, batch, conditional=True)


def transfer(m, batch, two_steps=False):
    def gap(near, detached):
        found = []
        for _, z, y in m.parts(batch):
            rows = [row.detach() if detached else row for row in z]
            found.append(mean(m.error(row, c, near) for row, c in zip(rows, y, strict=True)))
        return max(found, key=lambda risk: risk.item()) - min(found, key=lambda risk: risk.item())

    def nearby():
        own = {name: p.detach() for name, p in m.p.items() if name.startswith("head")}
        near = own
        for _ in range(m.h.ascent_steps):
            near = {name: p.detach().requires_grad_() for name, p in near.items()}
            slopes = torch.autograd.grad(m.h.penalty * gap(near, detached=True), list(near.values()))
            near = {name: (p + m.h.ascent_lr * s).detach() for (name, p), s in zip(near.items(), slopes, strict=True)}
            distance = sum((near[name] - p).square().sum() for name, p in own.items()) ** 0.5
            if distance > m.h.radius:
                near = {name: p + m.h.radius / distance * (near[name] - p) for name, p in own.items()}
        return near

    if two_steps:
        near = m.memory or {name: p.detach() for name, p in m.p.items() if name.startswith("head")}
        terms = m.step({"cross_entropy": mean(risks(m, batch))})
        terms |= m.step({"gap": m.h.penalty * gap(near, detached=False)}, "backbone")
        m.memory = nearby()
        return terms
    return with_penalty(m, batch, gap=m.h.penalty * gap(nearby(), detached=False))


def urm(m, batch):
    z = m.features(batch.x)

    def error(rows, label):
        found = []
        for row in rows:
            for layer in (0, 2):
                row = m.linear(f"discriminator.{layer}", row)
                row = torch.where(row > 0, row, 0.01 * row)
            chance = 1 / (1 + (-m.linear("discriminator.4", row)[0]).exp())
            found.append(-(chance if label else 1 - chance).log())
        return mean(found)

    terms = {"cross_entropy": mean(map(m.error, z, batch.y)), "adversary": m.h.adversary * error(z, 1)}
    m.step(terms, "backbone", "head")
    told = {"discriminator": error(torch.rand(z.shape), 1) + m.h.adversary * error(z.detach(), 0)}
    return terms | m.step(told, "discriminator", lr=m.h.discriminator_lr)


def ridg(m, batch, products=False):
    z, y, weight, penalty = m.features(batch.x), batch.y.tolist(), m.p["head.weight"], 0.0
    for c in sorted(set(y)):
        rows = [row for row, of in zip(z, y, strict=True) if of == c]
        new = mean(row.detach() for row in rows)
        new = weight.detach() * new if products else new
        m.memory[c] = (1 - m.h.momentum) * m.memory[c] + m.h.momentum * new if c in m.memory else new
        bank = m.memory[c] if products else weight.detach() * m.memory[c]
        penalty = penalty + mean((weight * row - bank).square().sum(1).mean() for row in rows)
    return with_penalty(m, batch, ridg=m.h.penalty * penalty)


def miro(m, batch):
    m.memory = m.memory or {name: p.detach() for name, p in m.p.items()}
    z, before = m.features(batch.x), m.features(batch.x, m.memory)
    terms = []
    for own, fixed in zip(z, before, strict=True):
        for a, b, spread in zip(own, fixed, m.p["spread"], strict=True):
            variance = (1 + spread.exp()).log() + 1e-5
            terms.append(variance.log() + (a - b) ** 2 / variance)
    trained = [name for name in m.p if not name.startswith("pretrained")]
    found = {"cross_entropy": mean(map(m.error, z, batch.y)), "information": m.h.information * mean(terms) / 2}
    return m.step(found, *trained)


def trm(m, batch, overwritten=False):
    if m.t < round(m.h.start * m.steps):
        return erm_step(m, batch)
    parts, found = m.parts(batch), []
    domains = [d for d, _, _ in parts]
    weights, alpha = m.buffers["domain_weights"], m.buffers["alpha"]

    def risk(w, z, y):
        return mean(cross_entropy(w[:, :-1] @ row + w[:, -1], c) for row, c in zip(z, y, strict=True))

    new = alpha.clone()
    for q, z, y in parts:
        fixed, w = [row.detach() for row in z], weights[q].detach()
        for _ in range(30):
            w.requires_grad_()
            w = (w - 0.1 * torch.autograd.grad(risk(w, fixed, y), w)[0]).detach()
        weights[q] = w
        shares = {i: alpha[q, i] / sum(alpha[q, k] for k in domains) for i in domains}
        others = {i: shares[i] * risk(w, rows, classes) for i, rows, classes in parts if i != q}
        w.requires_grad_()
        outside = sum(shares[i] * risk(w, [r.detach() for r in rows], c) for i, rows, c in parts if i != q)
        term = total = torch.autograd.grad(outside, w)[0][:, :-1]
        for k in range(10):
            (slope,) = torch.autograd.grad(risk(w, fixed, y), w, create_graph=True)
            (curved,) = torch.autograd.grad((slope[:, :-1] * term).sum(), w)
            term = term - curved[:, :-1]
            total = 2 * term if overwritten and k == 0 else total + term
            if total.abs().max() > 10:
                break
        (slope,) = torch.autograd.grad(risk(w, z, y), w, create_graph=True)
        found.append(sum(others.values()) - m.h.alignment * (total * slope[:, :-1]).sum())
        for i in domains:
            new[q, i] = shares[i] * (math.exp(m.h.eta * others[i].item()) if i != q else 1.0)
    m.buffers["alpha"] = new
    return with_penalty(m, batch, trm=mean(found))


def erm_step(m, batch):
    return m.step({"cross_entropy": errors(m, batch)})


def adrmx(m, batch, softened=False):
    y, domain, betas = batch.y.tolist(), batch.domain.tolist(), (m.h.beta1, 0.9)
    places = [sorted(set(domain)).index(d) for d in domain]
    z, d = m.features(batch.x), torch.relu(m.linear("domain_backbone.layers.1", batch.x.flatten(1)))
    rest = z - d

    def hidden(rows):
        found = []
        for row, place in zip(rows, places, strict=True):
            for layer in (0, 2):
                row = torch.relu(m.linear(f"discriminator.{layer}", row))
            found.append(cross_entropy(m.linear("discriminator.4", row), place))
        return mean(found)

    def contrast(rows):
        units, found = [row / row.norm().clamp_min(1e-12) for row in rows], []
        for i, own in enumerate(units):
            terms = {j: (own @ other / 0.07).exp() for j, other in enumerate(units) if j != i}
            alike = [j for j in terms if y[j] == y[i]]
            if alike and softened:  # both domains of a pair weigh a half
                whole = sum(terms.values()) / 2 + 1e-5
                found.append(-mean((terms[j] / 2 / whole + 1e-5).log() for j in alike))
            elif alike:
                found.append(mean((sum(terms.values()) / terms[j]).log() for j in alike))
        return sum(found) / (len(found) + softened)

    for _ in range(m.h.discriminator_steps):
        told = m.step(
            {"discriminator": hidden(rest.detach())}, "discriminator", betas=betas, lr=m.h.discriminator_lr, decay=0.0
        )
    other = partners(y)
    terms = {
        "cross_entropy": mean(map(m.error, z, y)),
        "invariant": mean(cross_entropy(m.linear("invariant_head", row), c) for row, c in zip(rest, y, strict=True)),
        "domain": m.h.domain
        * mean(cross_entropy(m.linear("domain_head", row), k) for row, k in zip(d, places, strict=True)),
        "remix": m.h.remix * mean(m.error(rest[i] + d[other[i]], y[i]) for i in range(len(y))),
        "contrast": m.h.contrast * (contrast(z) + contrast(rest)),
        "adversary": -m.h.adversary * hidden(rest),
    }
    return m.step(terms, "backbone", "head", "domain_", "invariant", betas=betas) | told


def mixstyle(m, batch):
    """Each row of features has the style of a mixture of its own and another's, as constants."""
    z = m.features(batch.x)
    if torch.rand(()) >= m.h.probability:
        return m.step({"cross_entropy": mean(map(m.error, z, batch.y))})

    def style(row):
        row = row.detach()
        return row.mean(), (variance(row) + 1e-6).sqrt()

    others = torch.randperm(len(z)).tolist()
    shares, mixed = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample((len(z), 1))[:, 0], []
    for row, other, share in zip(z, others, shares, strict=True):
        (middle, spread), (other_middle, other_spread) = style(row), style(z[other])
        content = (row - middle) / spread
        mixed.append(
            content * (share * spread + (1 - share) * other_spread) + share * middle + (1 - share) * other_middle
        )
    return m.step({"cross_entropy": mean(map(m.error, mixed, batch.y))})


def arm(m, batch):
    """Each sample is classified with the mean context of its domain's samples in the batch."""

    def two_layers(name, z):
        return m.linear(f"{name}.2", torch.relu(m.linear(f"{name}.0", z)))

    found = []
    for _, z, y in m.parts(batch):
        context = mean(two_layers("context", row) for row in z)
        found += [cross_entropy(two_layers("head", torch.cat([row, context])), c) for row, c in zip(z, y, strict=True)]
    return m.step({"cross_entropy": mean(found)})


def erm_plus_plus(m, batch):
    first = m.t < m.h.head_first * m.steps
    return m.step({"cross_entropy": errors(m, batch)}, *["head"] * first)
