"""Update rules by hand: the parameters of an algorithm, its Adam, and what several rules have in common."""

import torch


class Hand:
    """The parameters of an algorithm and its Adam (Kingma and Ba, 2015), with the layers written out."""

    def __init__(self, algorithm):
        self.h, self.counts, self.steps = algorithm.hparams, algorithm.task.counts.tolist(), algorithm.steps
        self.p = {name: value.detach().clone().requires_grad_() for name, value in algorithm.named_parameters()}
        self.buffers = {name: value.clone() for name, value in algorithm.named_buffers()}
        self.t, self.moments, self.memory = 0, {}, {}

    def features(self, x, p=None):
        hidden = "backbone.layers.1"
        return torch.relu(self.linear(hidden, x.flatten(1), p)) if f"{hidden}.weight" in self.p else x

    def linear(self, layer, z, p=None):
        p = p or self.p
        return z @ p[f"{layer}.weight"].T + p[f"{layer}.bias"]

    def error(self, z, c, p=None):
        """Cross-entropy of the classifier for one sample's features."""
        return cross_entropy(self.linear("head", z, p), c)

    def parts(self, batch):
        """(d, features, classes) of every domain."""
        z, domain, y = self.features(batch.x), batch.domain.tolist(), batch.y.tolist()
        found = {}
        for row, d, c in zip(z, domain, y, strict=True):
            rows, classes = found.setdefault(d, ([], []))
            rows.append(row)
            classes.append(c)
        return [(d, *of_domain) for d, of_domain in found.items()]

    def gradients(self, loss, *layers):
        """By name, of the parameters of these layers that the loss depends on."""
        names = [name for name in self.p if name.startswith(layers or "")]
        found = torch.autograd.grad(loss, [self.p[n] for n in names], retain_graph=True, allow_unused=True)
        return {name: g.detach() for name, g in zip(names, found, strict=True) if g is not None}

    def adam(self, gradients, lr=None, decay=None, betas=(0.9, 0.999)):
        lr, decay = (self.h.lr if lr is None else lr), (self.h.weight_decay if decay is None else decay)
        self.p = dict(self.p)
        for name, g in gradients.items():
            p = self.p[name].detach()
            t, m, v = self.moments.get(name, (0, 0.0, 0.0))
            g = g + decay * p
            t, m, v = t + 1, betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
            self.moments[name] = t, m, v
            direction = (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)) ** 0.5 + 1e-8)
            self.p[name] = (p - lr * direction).requires_grad_()

    def step(self, terms, *layers, **options):
        """One step of Adam on the sum of the terms."""
        self.adam(self.gradients(sum(terms.values()), *layers), **options)
        return terms


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def cross_entropy(scores, c):
    return sum(s.exp() for s in scores).log() - scores[c]


def cosine(a, b):
    return a @ b / a.norm().clamp_min(1e-12) / b.norm().clamp_min(1e-12)


def risks(m, batch):
    """Mean cross-entropy of every domain."""
    return [mean(map(m.error, z, y)) for _, z, y in m.parts(batch)]


def annealed(m):
    """Whether annealing is over; at its end, Adam is reset."""
    start = round(m.h.anneal * m.steps if m.h.anneal < 1 else m.h.anneal)
    if m.t == start:
        m.moments.clear()
    return m.t >= start


def invariance_penalty(m, batch):
    """IRM's: mean over domains of the product of the gradients of two halves in the scale of the scores."""
    penalties = []
    for _, z, y in m.parts(batch):
        scale = torch.ones((), requires_grad=True)
        errors = [cross_entropy(scale * m.linear("head", row), c) for row, c in zip(z, y, strict=True)]
        halves = [torch.autograd.grad(mean(errors[i::2]), scale, create_graph=True)[0] for i in (0, 1)]
        penalties.append(halves[0] * halves[1])
    return mean(penalties)
