"""DANN and CDANN against their formulas, with loops over samples, classes and domains."""

import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

NAMES = ["dann", "cdann"]
HPARAMS = {"lr": 0.02, "weight_decay": 0.1, "discriminator_lr": 0.03, "discriminator_decay": 0.2}
HPARAMS |= {"adversary": 0.7, "discriminator_steps": 3, "gradient_penalty": 0.4}


class Scores:
    """What the discriminator makes of features, by hand."""

    def __init__(self, by_hand, name, trained):
        self.by_hand, self.name, self.trained = by_hand, name, trained

    def error(self, z, y, d):
        """Its cross-entropy for one sample."""
        if self.name == "cdann":
            z = z + self.by_hand.p["class_embedding.weight"][y]
        for layer in ("discriminator.0", "discriminator.2"):
            z = torch.relu(self.by_hand.linear(layer, z))
        scores = self.by_hand.linear("discriminator.4", z)
        return torch.logsumexp(scores, 0) - scores[self.trained.index(int(d))]

    def errors(self, z, batch):
        return [self.error(*sample) for sample in zip(z, batch.y, batch.domain, strict=True)]

    def loss(self, z, batch):
        errors = self.errors(z, batch)
        if self.name == "dann":
            return sum(errors) / len(errors)
        of_classes = []
        for c in batch.y.unique():
            of_domains = []
            for d in batch.domain.unique():
                of_pair = [e for e, y, e_d in zip(errors, batch.y, batch.domain, strict=True) if (y, e_d) == (c, d)]
                if of_pair:
                    of_domains.append(sum(of_pair) / len(of_pair))
            if len(of_domains) > 1:
                of_classes.append(sum(of_domains) / len(of_domains))
        return sum(of_classes) / len(of_classes)

    def penalty(self, z, batch):
        """Mean over the samples of the squared length of an error's gradient by the sample's features."""
        squares = []
        for row, y, d in zip(z.detach(), batch.y, batch.domain, strict=True):
            row.requires_grad_()
            (slope,) = torch.autograd.grad(self.error(row, y, d), row, create_graph=True)
            squares.append(sum(s**2 for s in slope))
        return sum(squares) / len(squares)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("domains", "trained"), [((0, 1, 2), [0, 1, 2]), ((0, 2), [0, 2]), ((1, 2), [1, 2])])
@pytest.mark.parametrize("beta1", [0.0, 0.5])
def test_updates_are_those_of_the_formulas(name, domains, trained, beta1, tiny, samples, train, hand, hand_adam):
    counts = [[9, 9, 9] if d in trained else [0, 0, 0] for d in range(3)]
    for steps in (1, 3):
        batches = [samples(seed, domains) for seed in range(steps)]
        algorithm = tiny(name, counts, beta1=beta1, **HPARAMS)
        by_hand = hand(algorithm)
        scores = Scores(by_hand, name, trained)
        terms = train(algorithm, batches)
        generator = hand_adam(0.02, (beta1, 0.9), 0.1)
        discriminator = hand_adam(0.03, (beta1, 0.9), 0.2)
        for batch, found in zip(batches, terms, strict=True):
            z = by_hand.features(batch.x)
            for _ in range(3):
                told, penalty = scores.loss(z.detach(), batch), 0.4 * scores.penalty(z, batch)
                gradients = by_hand.gradients(told + penalty, "discriminator", "class_embedding")
                by_hand.p = discriminator.step(by_hand.p, gradients)
            cross_entropy = by_hand.cross_entropy(by_hand.linear("head", z), batch.y)
            adversary = -0.7 * scores.loss(z, batch)
            by_hand.p = generator.step(by_hand.p, by_hand.gradients(cross_entropy + adversary, "backbone", "head"))
            expected = {"cross_entropy": cross_entropy, "adversary": adversary}
            expected |= {"discriminator": told, "gradient_penalty": penalty}
            assert list(found) == list(expected)
            for key, value in expected.items():
                assert found[key].item() == pytest.approx(value.item(), rel=1e-9), key
        by_hand.assert_equal(algorithm)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_penalty_is_that_of_finite_differences(name, tiny, samples, train, hand):
    algorithm, batch = tiny(name, gradient_penalty=0.4), samples(0)
    scores = Scores(hand(algorithm), name, [0, 1, 2])
    with torch.no_grad():
        z, squares = algorithm.backbone(batch.x), 0.0
        for row, y, d in zip(z, batch.y, batch.domain, strict=True):
            for step in 1e-6 * torch.eye(5, dtype=torch.float64):
                squares += ((scores.error(row + step, y, d) - scores.error(row - step, y, d)) / 2e-6) ** 2
    (terms,) = train(algorithm, [batch])
    assert terms["gradient_penalty"].item() == pytest.approx(0.4 * float(squares) / 12, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_discriminator_has_an_output_for_every_domain_with_training_data(name, tiny):
    assert tiny(name, [[1, 2, 3], [0, 0, 0], [0, 4, 0]]).discriminator[-1].out_features == 2


def test_the_adversary_hides_the_domain_that_plain_features_show(train):
    """A discriminator that is not fought finds the domain; one that is fought stays at chance, log 2."""
    torch.manual_seed(0)
    domain, y = torch.arange(64) // 32, torch.arange(64) % 2
    x = torch.randn(64, 4) + 6 * torch.stack([domain, y, 0 * y, 0 * y], 1)
    found = {}
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        hparams = {"adversary": weight, "lr": 0.01, "discriminator_lr": 3e-4}
        algorithm = algorithms.build("dann", backbones.build("mlp", (4,), 16), Task(torch.full((2, 2), 16)), hparams)
        found[weight] = train(algorithm, [DomainBatch(x, y, domain)] * 100)[-1]
        assert found[weight]["cross_entropy"] < 0.1
    assert found[0.0]["discriminator"] < 0.1 and found[1.0]["discriminator"] > 0.5


def cdann_loss(algorithm, errors, y, domain):
    batch = DomainBatch(torch.zeros(len(y), 4), torch.tensor(y), torch.tensor(domain))
    return algorithm.mean(torch.tensor(errors, dtype=torch.float64), batch).item()


def test_cdann_weighs_every_domain_of_a_class_and_every_class_alike(tiny):
    algorithm = tiny("cdann")
    once = cdann_loss(algorithm, [1, 2, 5, 9], [0, 0, 2, 2], [0, 1, 0, 2])
    assert once == pytest.approx(((1 + 2) / 2 + (5 + 9) / 2) / 2)
    often = cdann_loss(algorithm, [1, 0, 2, 2, 5, 9], [0, 0, 0, 0, 2, 2], [0, 0, 0, 1, 0, 2])
    assert often == pytest.approx(once)


def test_cdann_leaves_a_class_of_one_domain_out(tiny):
    algorithm = tiny("cdann")
    assert cdann_loss(algorithm, [1, 2, 100], [0, 0, 1], [0, 1, 1]) == pytest.approx(1.5)
    assert cdann_loss(algorithm, [1, 2, 3], [0, 1, 2], [0, 1, 2]) == 0.0


def test_cdann_without_a_shared_class_trains_on_cross_entropy_alone(tiny, train):
    algorithm, without = tiny("cdann"), tiny("cdann", adversary=0.0)
    batch = DomainBatch(torch.eye(4, dtype=torch.float64), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
    terms = train(algorithm, [batch])[0]
    train(without, [batch])
    assert terms["adversary"] == terms["discriminator"] == 0
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), without.parameters(), strict=True))
