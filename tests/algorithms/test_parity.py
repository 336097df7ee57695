"""Every algorithm against its public implementation, whose update rule is written again with loops, in float64.

An oracle is our rule, and each of its options is something that public code does otherwise. Without options, the
parameters after each of 5 updates are ours; with one of them they are not, and `differs` names it. An algorithm without
options does what public code does. That is the code of the BoDA authors (YyzHarry/multi-domain-imbalance), DomainBed
(facebookresearch/DomainBed) and the methods' own (kaidic/LDAM-DRW, richardaecn/class-balanced-loss, hyseob/SagNet,
jiawei-ren/BalancedMetaSoftmax-Classification, google-research/logit_adjustment, YugeTen/fish,
YyzHarry/imbalanced-semi-self). DA, BoDA and BoDA-M are compared with the paper's equations; test_reference.py compares
`boda@reference` with the authors' code.
"""

import math
from itertools import combinations, cycle

import pytest
import torch
from tests.algorithms.oracles import alignment, generalisation, tails
from tests.algorithms.oracles.hand import Hand, annealed, cosine, cross_entropy, invariance_penalty, mean, risks
from torch import nn

from crosstail import algorithms, discovery
from crosstail.algorithms import Task
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch

ABSENT = [[400, 3, 0, 9], [1, 25, 70, 0], [0, 0, 0, 0], [6, 5, 40, 2]]  # absent pairs, and a domain that is not seen
TWELVE = [
    [0, 0, 0] if d in (3, 11) else [1 + (7 * d + 5 * c) % 11 * 30 * (d != c) for c in range(3)] for d in range(12)
]
ADVERSARY = {"adversary": 0.7, "discriminator_lr": 0.03, "discriminator_decay": 0.2, "discriminator_steps": 2}
ADVERSARY |= {"gradient_penalty": 0.4}
HPARAMS = (
    {
        "cb_loss": {"beta": 0.99},
        "cdann": ADVERSARY,
        "coral": {"gamma": 0.7},
        "dann": ADVERSARY,
        "fish": {"meta_lr": 0.3},
        "focal": {"gamma": 0.5},
        "group_dro": {"eta": 0.3},
        "irm": {"penalty": 20.0, "anneal": 3},
        "ldam": {"max_m": 0.3, "scale": 10.0},
        "logit_adjustment": {"tau": 0.6},
        "mixup": {"alpha": 0.8},
        "mldg": {"beta": 0.7},
        "mmd": {"gamma": 0.7},
        "mtl": {"ema": 0.8},
        "sagnet": {"adversary": 0.7},
    }
    | alignment.HPARAMS
    | generalisation.HPARAMS
    | tails.HPARAMS
)


@pytest.fixture(autouse=True)
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def build(name, counts=ABSENT, shape=(4,), **hparams):
    """One hidden layer; CRT trains a classifier on fixed features, so it has none."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), 5), nn.ReLU())
    backbone = Backbone(nn.Identity(), 4) if name == "crt" else Backbone(layers, 5, maps=("",))
    hparams = {"lr": 0.02, "weight_decay": 0.1, **HPARAMS.get(name, {}), **hparams}
    algorithm = algorithms.build(name, backbone, Task(torch.tensor(counts)), hparams).double().train()
    for parameter in algorithm.parameters():
        if not parameter.any():  # at 0 a gradient may be a rounding error, of which Adam makes a step
            nn.init.normal_(parameter)
    algorithm.steps = 5
    return algorithm


def make_batch(seed, counts, shape, size):
    """Samples of every domain that is seen, and of the classes that it has."""
    generator = torch.Generator().manual_seed(seed)
    classes = [[c for c, n in enumerate(row) if n] for row in counts]
    domain = torch.tensor([d for d, present in enumerate(classes) if present for _ in range(size)])
    y = [classes[d][int(torch.randint(len(classes[d]), (), generator=generator))] for d in domain.tolist()]
    x = torch.randn(len(domain), *shape, generator=generator) + domain.view(-1, *[1] * len(shape)) / 3
    return DomainBatch(x, torch.tensor(y), domain)


def erm(m, batch):
    z = m.features(batch.x)
    return m.step({"cross_entropy": mean(m.error(row, c) for row, c in zip(z, batch.y, strict=True))})


crt = resample = erm  # which differ in the batches


def focal(m, batch):
    errors = [m.error(row, c) for _, z, y in m.parts(batch) for row, c in zip(z, y, strict=True)]
    return m.step({"cross_entropy": mean((1 - (-e).exp()) ** m.h.gamma * e for e in errors)})


def weighted(m, batch, weight_of, over_weights, error=None):
    """Mean over the domains of Σ w · error, over the number of samples or over Σ w."""
    losses = []
    for d, z, y in m.parts(batch):
        weights = [weight_of(m.counts[d], c) for c in y]
        errors = [error(d, row, c) if error else m.error(row, c) for row, c in zip(z, y, strict=True)]
        losses.append(sum(map(torch.mul, errors, weights)) / (sum(weights) if over_weights else len(y)))
    return m.step({"cross_entropy": mean(losses)})


def averaging_one(weights, row):
    """The weights of a domain's classes, scaled to average 1 over its samples."""
    return [w * sum(row) / sum(v * n for v, n in zip(weights, row, strict=True)) for w in weights]


def effective(n, beta):
    return (1 - beta**n) / (1 - beta)


def reweight(m, batch, over_weights=False):
    return weighted(m, batch, lambda row, c: averaging_one([n and 1 / n for n in row], row)[c], over_weights)


def sqrt_reweight(m, batch, over_weights=False):
    return weighted(m, batch, lambda row, c: averaging_one([n and n**-0.5 for n in row], row)[c], over_weights)


def cb_loss(m, batch, over_weights=False):
    def weight(row, c):
        inverse = [1 / effective(n, m.h.beta) for n in row if n]
        return len(inverse) / effective(row[c], m.h.beta) / sum(inverse)

    return weighted(m, batch, weight, over_weights)


def ldam(m, batch, over_weights=False, margin_per_domain=False, plain_classifier=False, never_weighted=False):
    def weight(row, c):
        deferred = m.t >= 0.8 * m.steps and not never_weighted
        return averaging_one([n and 1 / effective(n, 0.9999) for n in row], row)[c] if deferred else 1.0

    def error(d, z, c):
        rarest = min(n for row in (m.counts[d : d + 1] if margin_per_domain else m.counts) for n in row if n)
        margin = m.h.max_m * (rarest / m.counts[d][c]) ** 0.25
        scores = [w @ z if plain_classifier else cosine(w, z) for w in m.p["head.weight"]]
        return cross_entropy([m.h.scale * (s - margin * (k == c)) for k, s in enumerate(scores)], c)

    return weighted(m, batch, weight, over_weights, error)


def with_prior(m, batch, prior_of):
    """−log of π_c exp(s_c) / Σ_k π_k exp(s_k)."""
    losses = []
    for d, z, y in m.parts(batch):
        for row, c in zip(z, y, strict=True):
            terms = [prior * s.exp() for prior, s in zip(prior_of(d), m.linear("head", row), strict=True)]
            losses.append(sum(terms).log() - terms[c].log())
    return m.step({"cross_entropy": mean(losses)})


def bsoftmax(m, batch, absent=0):
    return with_prior(m, batch, lambda d: [n or absent for n in m.counts[d]])


def logit_adjustment(m, batch, added=0.0):
    def prior(d):
        row = [sum(column) for column in zip(*m.counts, strict=True)] if m.h.prior == "global" else m.counts[d]
        return [(n / sum(row)) ** m.h.tau + added for n in row]

    return with_prior(m, batch, prior)


def irm(m, batch):
    weight = m.h.penalty if annealed(m) else 1.0
    return m.step({"cross_entropy": mean(risks(m, batch)), "irm": weight * invariance_penalty(m, batch)})


def with_distance(m, batch, name, distance):
    """Cross-entropy + γ · the mean of a distance between the features of two domains."""
    parts = m.parts(batch)
    penalty = mean(distance(a, b) for (_, a, _), (_, b, _) in combinations(parts, 2))
    return m.step({"cross_entropy": mean(mean(map(m.error, z, y)) for _, z, y in parts), name: m.h.gamma * penalty})


def coral(m, batch):
    def covariance(rows):
        return sum(torch.outer(row - mean(rows), row - mean(rows)) for row in rows) / (len(rows) - 1)

    def distance(a, b):
        return (mean(a) - mean(b)).square().mean() + (covariance(a) - covariance(b)).square().mean()

    return with_distance(m, batch, "coral", distance)


def mmd(m, batch):
    rates = torch.tensor([10.0**k for k in range(-3, 4)])

    def kernel(a, b):
        return mean((-rates * (u - v).square().sum()).exp().sum() for u in a for v in b)

    return with_distance(m, batch, "mmd", lambda a, b: kernel(a, a) + kernel(b, b) - 2 * kernel(a, b))


def mtl(m, batch, from_zero=False, noise=False, summed=False):
    losses = []
    for d, z, y in m.parts(batch):
        embedding = mean(z)
        if d in m.memory or from_zero:
            embedding = m.h.ema * embedding + (1 - m.h.ema) * m.memory.get(d, torch.zeros(5))
        m.memory[d] = embedding.detach()
        beside = torch.randn(len(z), 5) if noise else [embedding] * len(z)
        losses.append(mean(m.error(torch.cat(both), c) for *both, c in zip(z, beside, y, strict=True)))
    return m.step({"cross_entropy": sum(losses) if summed else mean(losses)})


def mixup(m, batch):
    """Each domain is mixed with its neighbour in a random ring, sample by sample, with a share of its own."""
    parts = [(batch.x[batch.domain == d], batch.y[batch.domain == d]) for d in batch.domain.unique()]
    order = torch.randperm(len(parts)).tolist()
    shares = torch.distributions.Beta(m.h.alpha, m.h.alpha).sample((len(parts),))
    losses = []
    for k, share in enumerate(shares):
        (x, y), (other_x, other_y) = parts[order[k]], parts[order[k - 1]]
        z = m.features(share * x + (1 - share) * other_x)
        losses.append(share * mean(map(m.error, z, y)) + (1 - share) * mean(map(m.error, z, other_y)))
    return m.step({"cross_entropy": mean(losses)})


def fish(m, batch, fixed_order=False):
    domains, before, losses = batch.domain.unique().tolist(), m.p, []
    for k in range(len(domains)) if fixed_order else torch.randperm(len(domains)).tolist():
        rows = batch.domain == domains[k]
        losses.append(mean(map(m.error, m.features(batch.x[rows]), batch.y[rows])))
        m.step({"cross_entropy": losses[-1]})
    m.p = {name: (p + m.h.meta_lr * (m.p[name] - p)).detach().requires_grad_() for name, p in before.items()}
    return {"cross_entropy": mean(losses)}


def mldg(m, batch, inner_adam=False, held_out=0):
    """The gradient of the mean over i of L_i(θ) + β L_j(θ − lr ∇L_i(θ)), with ∇L_i as a constant."""
    domains = batch.domain.unique().tolist()

    def loss(d, p):
        rows = batch.domain == d
        return mean(m.error(z, c, p) for z, c in zip(m.features(batch.x[rows], p), batch.y[rows], strict=True))

    ring = [domains[k] for k in torch.randperm(len(domains)).tolist()]
    pairs = zip(ring[:-held_out], cycle(ring[-held_out:])) if held_out else zip(ring, ring[1:] + ring[:1], strict=True)
    summed, own, other = dict.fromkeys(m.p, 0.0), [], []
    for i, j in pairs:
        own.append(loss(i, m.p))
        first = direction = m.gradients(own[-1])
        if inner_adam:  # its first step divides by the size of the gradient
            decayed = {name: g + m.h.weight_decay * m.p[name].detach() for name, g in first.items()}
            direction = {name: g / (g.abs() + 1e-8) for name, g in decayed.items()}
        moved = {name: (p - m.h.lr * direction[name]).detach().requires_grad_() for name, p in m.p.items()}
        other.append(m.h.beta * loss(j, moved))
        second = dict(zip(moved, torch.autograd.grad(other[-1], list(moved.values())), strict=True))
        summed = {name: value + (first[name] + second[name]) / len(domains) for name, value in summed.items()}
    m.adam(summed)
    return {"cross_entropy": mean(own), "another_domain": mean(other)}


def sagnet(m, batch, variances=False, shuffled_again=False):
    """Steps on mixed styles, of the style classifier on shuffled content, and of the backbone against it."""

    def style(z):
        variance = (z - z.mean()).square().sum() / (len(z) - 1 if variances else len(z))
        return z.mean(), variance if variances else (variance + 1e-5).sqrt()

    def deviation(spread):
        return (spread + 1e-5).sqrt() if variances else spread

    def content(z):
        middle, spread = style(z)
        return (z - middle) / deviation(spread)

    z, mixed = m.features(batch.x), []
    for row, other, share in zip(z, torch.randperm(len(z)).tolist(), torch.rand(len(z), 1)[:, 0], strict=True):
        middle, spread = (share * a + (1 - share) * b for a, b in zip(style(row), style(z[other]), strict=True))
        mixed.append(content(row) * deviation(spread) + middle)
    found = m.step({"cross_entropy": mean(map(m.error, mixed, batch.y))}, "backbone", "head")
    z = m.features(batch.x)

    def told():
        order = torch.randperm(len(z)).tolist()
        return [
            content(z[o]).detach() * deviation(style(row)[1]) + style(row)[0] for row, o in zip(z, order, strict=True)
        ]

    shuffled = told()
    errors = [cross_entropy(m.linear("style", row), c) for row, c in zip(shuffled, batch.y, strict=True)]
    found |= m.step({"style": mean(errors)}, "style")
    scores = [m.linear("style", row) for row in (told() if shuffled_again else shuffled)]
    uniform = mean(cross_entropy(s, c) for s in scores for c in range(len(s)))
    return found | m.step({"adversary": m.h.adversary * uniform}, "backbone")


def dann(m, batch, conditional=False, alternate=False, penalise_backbone=False, of_probabilities=False, classes=False):
    seen, betas = batch.domain.unique().tolist(), (m.h.beta1, 0.9)
    samples = [(c, seen.index(d)) for c, d in zip(batch.y.tolist(), batch.domain.tolist(), strict=True)]

    def scores(z, c):
        z = z + m.p["class_embedding.weight"][c] if conditional else z
        for layer in (0, 2):
            z = torch.relu(m.linear(f"discriminator.{layer}", z))
        return m.linear("discriminator.4", z)

    def loss(z):
        errors = [cross_entropy(scores(row, c), d) for row, (c, d) in zip(z, samples, strict=True)]
        if not conditional:
            return mean(errors)
        of_class = {c: {} for c, _ in samples}
        for error, (c, d) in zip(errors, samples, strict=True):
            of_class[c].setdefault(d, []).append(error)
        if classes:  # those that are numbered up to the largest of the batch
            found = [mean(e for errors in of_domain.values() for e in errors) for of_domain in of_class.values()]
            return sum(found) / (max(of_class) + 1)
        return mean(mean(map(mean, of_domain.values())) for of_domain in of_class.values() if len(of_domain) > 1)

    def penalty(z):
        """Mean squared gradient of a sample's error in its features; once, of its probabilities of all labels."""
        squares = []
        for row, (c, d) in zip(z, samples, strict=True):
            row = row if row.requires_grad else row.requires_grad_()
            probabilities = scores(row, c).softmax(0)
            value = sum(probabilities[e] for _, e in samples) if of_probabilities else cross_entropy(scores(row, c), d)
            squares.append(torch.autograd.grad(value, row, create_graph=True)[0].square().sum())
        return m.h.gradient_penalty * mean(squares)

    z, steps = m.features(batch.x), m.h.discriminator_steps
    options = {"lr": m.h.discriminator_lr, "decay": m.h.discriminator_decay}
    of_discriminator = (m.t + 1) % (1 + steps) < steps  # DomainBed counts from 1
    for _ in range(of_discriminator if alternate else steps):
        told = {"discriminator": loss(z.detach()), "gradient_penalty": penalty(z.detach())}
        m.step(told, "discriminator", "class_embedding", betas=betas, **options)
    if alternate and of_discriminator:
        return told
    adversary = loss(z) + (penalty(list(z)) if penalise_backbone else 0)
    found = {"cross_entropy": mean(map(m.error, z, batch.y)), "adversary": -m.h.adversary * adversary}
    m.step(found, "backbone", "head", betas=betas)
    return found if alternate else found | told


def cdann(m, batch, **options):
    return dann(m, batch, conditional=True, **options)


def ssp(m, batch, equally_often=False):
    if m.t >= m.h.pretraining * m.steps:
        return erm(m, batch)
    size = len(batch)
    if batch.x.ndim == 4:
        turns = (torch.randperm(size) % 4 if equally_often else torch.randint(4, (size,))).tolist()
        z = m.features(torch.stack([torch.rot90(x, k, (1, 2)) for x, k in zip(batch.x, turns, strict=True)]))
        errors = [cross_entropy(m.linear("turn_head", row), k) for row, k in zip(z, turns, strict=True)]
    else:
        others, chosen = torch.randint(size, batch.x.shape), torch.rand(batch.x.shape) < 0.6
        corrupted = batch.x.clone()
        for i, k in chosen.nonzero().tolist():
            corrupted[i, k] = batch.x[others[i, k], k]
        own, copies = (m.linear("copy_head", m.features(x)) for x in (batch.x, corrupted))
        errors = [cross_entropy([cosine(a, b) for b in copies], i) for i, a in enumerate(own)]
    return m.step({"self_supervision": mean(errors)})


RULES = globals() | vars(alignment) | vars(generalisation) | vars(tails)
ORACLES = {name: RULES[name] for name in discovery.names("crosstail.algorithms") if name in RULES}
CASES = (
    {name: {} for name in ORACLES}
    | {"logit_adjustment global": {"prior": "global"}, "ssp images": {}}
    | alignment.CASES
    | tails.CASES
)
DIFFERENCES = [
    ("reweight", {"over_weights": True}, "sum of the batch's weights"),
    ("sqrt_reweight", {"over_weights": True}, "sum of the batch's weights"),
    ("cb_loss", {"over_weights": True}, "sum of the batch's weights"),
    ("ldam", {"over_weights": True}, "sum of the batch's weights"),
    ("ldam", {"margin_per_domain": True}, "rarest class of each domain"),
    ("ldam", {"plain_classifier": True}, "cosine classifier"),
    ("ldam", {"never_weighted": True}, "deferred weights"),
    ("bsoftmax", {"absent": 1}, "n = 1"),
    ("logit_adjustment", {"added": 1e-12}, "1e-12"),
    ("mtl", {"from_zero": True}, "first embedding"),
    ("mtl", {"noise": True}, "noise"),
    ("mtl", {"summed": True}, "sum"),
    ("fish", {"fixed_order": True}, "order of the domains"),
    ("mldg", {"inner_adam": True}, "one of Adam"),
    ("mldg", {"held_out": 1}, "hold out some domains"),
    ("sagnet", {"variances": True}, "unbiased variances"),
    ("sagnet", {"shuffled_again": True}, "shuffles it again"),
    ("dann", {"alternate": True}, "alternates over batches"),
    ("dann", {"penalise_backbone": True}, "backbone also learns to increase the penalty"),
    ("dann", {"of_probabilities": True}, "probabilities"),
    ("cdann", {"classes": True}, "only classes"),
    ("ssp images", {"equally_often": True}, "equally frequent"),
    *alignment.DIFFERENCES,
    *generalisation.DIFFERENCES,
    *tails.DIFFERENCES,
]


def compare(case, updates, counts=ABSENT, size=3, **options):
    """Our terms and parameters, and the oracle's, after every update."""
    name, shape = case.split()[0], (3, 2, 2) if case == "ssp images" else (4,)
    batches = [make_batch(seed, counts, shape, size) for seed in range(updates)]
    algorithm = build(name, counts, shape, **CASES[case])
    m, optimizers, found, expected = Hand(algorithm), algorithm.optimizers(), [], []
    torch.manual_seed(5)
    for algorithm.step, batch in enumerate(batches):
        terms = algorithm.update(batch, optimizers, torch.Tensor.backward)
        found.append((terms, {name: value.detach().clone() for name, value in algorithm.named_parameters()}))
    torch.manual_seed(5)
    for m.t, batch in enumerate(batches):
        expected.append((ORACLES[name](m, batch, **options), m.p))
    return zip(found, expected, strict=True)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("counts", "size", "updates"), [(ABSENT, 3, 5), (TWELVE, 2, 1)], ids=["absent pairs", "12 domains"]
)
def test_terms_and_parameters_after_every_update_are_those_of_the_rule(case, counts, size, updates):
    for (terms, parameters), (expected, wanted) in compare(case, updates, counts, size):
        assert terms.keys() == expected.keys()
        for term, value in terms.items():
            assert value.item() == pytest.approx(expected[term].item(), rel=1e-8, abs=1e-10), term
        for name, value in parameters.items():
            torch.testing.assert_close(value, wanted[name].detach(), rtol=1e-7, atol=1e-9, msg=f"{name}: {{}}".format)


@pytest.mark.parametrize(("case", "option", "words"), DIFFERENCES, ids=lambda value: "".join(value))
def test_where_public_code_does_otherwise_the_parameters_and_the_documentation_say_so(case, option, words):
    *_, ((_, parameters), (_, others)) = compare(case, 5, **option)
    distance = max((value - others[name]).abs().max().item() for name, value in parameters.items())
    assert distance > 1e-5 * (option.get("added") or 1)
    assert words in "; ".join(algorithms.find(case.split()[0]).differs)


def test_every_algorithm_is_compared():
    trains_nothing = {"frozen"}
    assert {*ORACLES, *trains_nothing} == set(discovery.names("crosstail.algorithms"))
