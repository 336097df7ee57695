"""Algorithms combined by name, and presets: loss terms, hyperparameters, and what cannot be combined."""

import copy
from itertools import combinations, product

import pytest
import torch

from crosstail import algorithms, backbones, discovery
from crosstail.algorithms import Task
from crosstail.data import DomainBatch
from crosstail.training.resolve import all_hparams, resolve
from crosstail.training.spec import RunSpec

PRESETS = ("boda@reference", "boda@rescaled", "boda_m", "boda_m@rescaled", "da@rescaled")
COUNTS = torch.tensor([[40, 3, 9], [1, 25, 0]])


def build(name, counts=COUNTS, **hparams):
    torch.manual_seed(0)
    algorithm = algorithms.build(name, backbones.build("mlp", (4,), 5), Task(counts), hparams).train()
    algorithm.step, algorithm.steps = 600, 1000  # the warm-up is over
    return algorithm


def make_batch():
    torch.manual_seed(1)
    return DomainBatch(torch.randn(8, 4), torch.tensor([0, 0, 1, 2, 0, 1, 1, 1]), torch.arange(8) // 4)


def losses(algorithm):
    batch = make_batch()
    return {name: term.item() for name, term in algorithm.losses(algorithm.backbone(batch.x), batch).items()}


@pytest.mark.parametrize("name", ["boda+coral", "bsoftmax+coral", "boda+bsoftmax+coral", "boda_m+focal+mmd", "da+ldam"])
def test_it_has_the_terms_of_all_parts_in_any_order(name):
    parts, expected = name.split("+"), {}
    for part in parts:
        expected |= losses(build(part))
    replaces = next((part for part in parts if part in ("bsoftmax", "focal", "ldam")), "erm")
    expected["cross_entropy"] = losses(build(replaces))["cross_entropy"]
    assert losses(build(name)) == pytest.approx(expected)
    backwards = "+".join(reversed(parts))
    assert losses(build(backwards)) == losses(build(name))
    assert algorithms.canonical(backwards) == algorithms.canonical(name) == name


def test_it_has_the_hyperparameters_of_all_parts():
    algorithm = build("boda_m+coral", gamma="0.3", nu=0.5)
    assert (algorithm.hparams.gamma, algorithm.hparams.nu, algorithm.hparams.lr) == (0.3, 0.5, 1e-3)
    with pytest.raises(ValueError, match="unknown hyperparameter 'nu'"):
        build("da+coral", nu=0.5)


def test_a_hyperparameter_that_several_parts_have_is_addressed_by_its_part():
    words = {"coral.gamma": "0.5", "mmd.gamma": 3, "focal.gamma": 2.0}
    algorithm = build("coral+focal+mmd", **words)
    own = losses(build("coral", gamma=0.5)) | losses(build("mmd", gamma=3.0)) | losses(build("focal", gamma=2.0))
    assert losses(algorithm) == pytest.approx(own)
    found = algorithms.values(algorithm.hparams)
    assert {name: found[name] for name in words} == {**words, "coral.gamma": 0.5} and "gamma" not in found
    declared = algorithms.find("coral+focal+mmd").Hparams
    assert set(algorithms.ranges(declared)) >= set(words)
    assert set(algorithms.draw(declared, trial=1)) >= set(words)
    with pytest.raises(ValueError, match=r"'gamma'.*coral\.gamma"):
        build("coral+mmd", gamma=1.0)


@pytest.mark.parametrize("name", ["boda+coral", "boda@reference"])
def test_a_hyperparameter_of_one_part_may_be_addressed_by_it(name):
    short, long = (
        resolve(RunSpec(dataset="digits", algorithm=name, hparams=hparams))
        for hparams in ({"gamma": "0.3", "nu": 0.5}, {"coral.gamma": "0.3", "boda.nu": 0.5})
    )
    assert long == short and long.key == short.key and long.hparams["gamma"] == 0.3
    for wrong in ("boda.gamma", "coral.lr", "mmd.gamma"):
        with pytest.raises(ValueError, match=f"unknown hyperparameter '{wrong}': there are lr, "):
            algorithms.parse_for(name, {wrong: 1.0})


def test_a_default_of_finetuning_gives_way_to_the_hyperparameter_of_the_part():
    given, finetuned = {"dann.discriminator_lr": 0.01}, RunSpec(dataset="pacs", backbone="resnet50", tune="all")
    assert all_hparams(finetuned, "coral+dann", given)["discriminator_lr"] == 0.01


def test_hyperparameters_read_in_build_are_those_of_the_part(tmp_path):
    source = '''
from crosstail.algorithms._hparams import hp
from crosstail.algorithms.erm import ERM

class Mine(ERM):
    """Mine (Me, 2024)."""

    adds_term = True

    class Hparams(ERM.Hparams):
        nu: float = hp(7.0, None, "something else")

    def build(self):
        super().build()
        self.seen = self.hparams.nu

    def losses(self, z, batch):
        return super().losses(z, batch) | {"mine": self.hparams.nu * z.sum()}
'''
    (tmp_path / "a+b.py").write_text(source)
    mine = f"{tmp_path}/a+b.py"
    assert algorithms.find(mine).__name__ == "Mine"
    algorithm = build(f"{mine}+boda+bsoftmax", **{"boda.nu": 0.5})
    assert algorithm.seen == 7.0
    assert algorithm.criterion.options["nu"] == 0.5
    assert list(losses(algorithm)) == ["cross_entropy", "alignment", "mine"]
    assert discovery.own_files(f"{mine}+boda") == discovery.own_files(f"boda+{mine}") == [mine]
    assert algorithms.canonical(f"{mine}+boda") == f"boda+{mine}"


@pytest.mark.parametrize(
    "name", ["boda+coral", "boda+dann", "bsoftmax+fish", "irm+mmd", "boda+mldg", "sagnet+bsoftmax"]
)
def test_it_trains_and_can_be_copied_and_restored(name):
    algorithm = build(name, lr=0.01)
    before = copy.deepcopy(algorithm)
    optimizers = algorithm.optimizers()
    terms = algorithm.update(make_batch(), optimizers, torch.Tensor.backward)
    assert all(bool(term.isfinite()) for term in terms.values())
    assert any(not torch.equal(a, b) for a, b in zip(algorithm.parameters(), before.parameters(), strict=True))
    before.load_state_dict(algorithm.state_dict())
    assert torch.equal(before.eval()(make_batch().x), algorithm.eval()(make_batch().x))


def test_its_updates_are_those_of_the_sum():
    algorithm, other = build("boda+coral", lr=0.01), build("boda+coral", lr=0.01)
    algorithm.update(make_batch(), algorithm.optimizers(), torch.Tensor.backward)
    adam, batch = torch.optim.Adam(other.parameters(), lr=0.01), make_batch()
    sum(other.losses(other.backbone(batch.x), batch).values()).backward()
    adam.step()
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), other.parameters(), strict=True))


KINDS = ("boda", "bsoftmax", "coral", "dann", "ldam", "mldg", "mtl")  # a term, a loss, a step, other classifiers


def terms_of(algorithm):
    return set(algorithm.update(make_batch(), algorithm.optimizers(), torch.Tensor.backward))


def test_each_algorithm_and_one_of_each_kind_either_train_or_say_why_not():
    """No combination drops a part in silence: the loss terms of each part or of its step appear."""
    refused, names = 0, discovery.names("crosstail.algorithms")
    alone = {name: terms_of(build(name)) - {"cross_entropy"} for name in names}
    for first, second in product(names, KINDS):
        name = f"{first}+{second}"
        try:
            algorithm = build(name)
        except ValueError as error:
            refused += 1
            assert name in str(error), name
            continue
        assert alone[first] | alone[second] <= terms_of(algorithm), name
    assert refused


def test_no_two_that_combine_keep_different_things_under_one_name():
    shared = {name.split(".")[0] for name in build("erm").state_dict()} | {"criterion"}
    kept = {
        n: {k.split(".")[0] for k in build(n).state_dict()} - shared for n in discovery.names("crosstail.algorithms")
    }
    for first, second in combinations(kept, 2):
        if kept[first] & kept[second]:
            with pytest.raises(ValueError, match=r"both replace|forms of one"):
                algorithms.find(f"{first}+{second}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("boda+da", "boda and da"),
        ("bsoftmax+focal", "bsoftmax and focal both replace the classification loss"),
        ("dann+fish", "dann and fish both replace the training step"),
        ("coral+mldg", "mldg trains on one domain at a time, and coral compares domains"),
        ("boda+mixup", "Mixup"),
        ("boda+erm", "erm adds nothing"),
        ("boda+crt", "crt stands for erm:retrain"),
        ("boda+boda", "boda is part of it twice"),
        ("boda@reference+coral", "coral is part of it twice"),
        ("boda+corall", "unknown algorithm 'corall': did you mean 'coral'"),
        ("boda+", "unknown algorithm ''"),
        ("boda++coral", "unknown algorithm ''"),
        ("boda@ref", "boda has no preset 'ref': did you mean 'reference'"),
        ("erm@ref", "erm has no preset 'ref'"),
    ],
)
def test_what_cannot_be_combined_is_said(name, message):
    with pytest.raises(ValueError, match=message):
        algorithms.find(name)


def test_a_method_that_compares_domains_needs_two_with_training_data():
    for name in ("coral", "boda+coral"):
        with pytest.raises(ValueError, match="needs 2 that have training data; the data have 1: use"):
            build(name, torch.tensor([[4, 5, 0], [0, 0, 0]]))


@pytest.mark.parametrize("name", ["rescaled", "pooled"])
def test_a_preset_is_its_algorithm_with_other_defaults(name):
    preset, plain = algorithms.find(f"boda@{name}"), algorithms.find("boda")
    changed = {n for n, v in algorithms.values(preset.Hparams()).items() if v != algorithms.values(plain.Hparams())[n]}
    assert changed == {name}
    assert losses(build(f"boda@{name}")) == losses(build("boda", **{name: True})) != losses(build("boda"))
    assert preset.differs != plain.differs and preset.__doc__ != plain.__doc__
    assert losses(build(f"bsoftmax+boda@{name}")) == losses(build("boda+bsoftmax", **{name: True}))
    assert algorithms.canonical(f"bsoftmax+boda@{name}") == f"boda@{name}+bsoftmax"


@pytest.mark.parametrize("name", ["boda@rescaled", "boda@pooled", "boda_m@rescaled", "da@rescaled"])
def test_a_preset_deviates_from_the_paper_as_its_algorithm_does_and_further(name):
    own, of_preset = (algorithms.find(word).differs for word in (name.partition("@")[0], name))
    assert of_preset[: len(own)] == own and len(of_preset) > len(own)


def test_deviations_are_those_of_what_is_computed():
    deviations = {name: "; ".join(algorithms.find(name).differs) for name in PRESETS}
    assert "weighted by N̄ / N_i" in deviations["boda@rescaled"]
    assert not any(word in deviations["da@rescaled"] for word in ("ν", "count", "N_i", "equation (2)"))
    assert "moving averages" not in deviations["boda@reference"]
    assert all(
        "diagonal" in deviations[name] and "shrunk" in deviations[name] for name in ("boda_m", "boda_m@rescaled")
    )


def test_the_reference_searches_the_interval_of_full_passes_as_the_authors_do():
    drawn = {algorithms.draw(algorithms.find("boda@reference").Hparams, trial)["refresh"] for trial in range(1, 400)}
    assert min(drawn) == 100 and max(drawn) == 149


def test_the_reference_has_the_authors_defaults_and_ranges_for_domain_net():
    for name in ("boda@reference", "boda@reference+bsoftmax"):
        declared = algorithms.find(name).Hparams
        drawn = [algorithms.draw(declared, trial, on="domain_net") for trial in range(1, 200)]
        assert {each["warmup"] for each in drawn} == {2000, 3000, 4000, 5000}
        assert 1500 <= min(each["refresh"] for each in drawn) < 1550 and max(each["refresh"] for each in drawn) > 2950
        elsewhere = [algorithms.draw(declared, trial, on="pacs") for trial in range(1, 200)]
        assert all(
            e.items() - d.items() <= {("warmup", e["warmup"]), ("refresh", e["refresh"])}
            for d, e in zip(drawn, elsewhere, strict=True)
        )
        for data, expected in (("domain_net", (3000, 2000)), ("Domain_Net:photos", (3000, 2000)), ("pacs", (500, 120))):
            spec = resolve(RunSpec(dataset=data, algorithm=name, backbone="small_cnn"))
            assert (spec.hparams["warmup"], spec.hparams["refresh"]) == expected


def test_a_file_without_an_algorithm_says_what_to_derive_one_from(tmp_path):
    (tmp_path / "empty.py").write_text("x = 1")
    with pytest.raises(ValueError, match=r"empty\.py.* 0 .*Algorithm.*erm\.ERM"):
        algorithms.find(str(tmp_path / "empty.py"))
