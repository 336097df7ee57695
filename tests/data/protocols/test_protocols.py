"""Which samples each protocol trains on, selects on and tests on, and that runs follow it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail import data
from crosstail.data import load_source, protocols
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs


def prepared(**fields) -> data.DomainDataset:
    """The digits as a run with these fields sees them."""
    return load_inputs(resolve(RunSpec(dataset="digits", **fields))).samples


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    save_separable(tmp_path / "easy.npz")
    return RunSpec(
        dataset=str(tmp_path / "easy.npz"), algorithm="boda", backbone="mlp", width=8, steps=20, evaluations=2
    )


def test_mdlt_keeps_the_split_and_the_profiles_of_the_sheet() -> None:
    found = prepared()
    expected = data.load("digits")
    assert (found.counts("train") == expected.counts("train")).all() and found.checksum == expected.checksum


SIZES = (4, 10, 13, 27)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory) -> Path:
    """Four domains of these sizes, in mixed order, with a split of their own."""
    chance = np.random.default_rng(0)
    domain = chance.permutation(np.repeat(np.arange(4), SIZES))
    x = np.arange(len(domain), dtype=np.float32)[:, None]
    path = tmp_path_factory.mktemp("data") / "v.npz"
    np.savez(
        path, x=x, y=np.arange(len(domain)) % 3, domain=domain, split=["train"] * len(domain), domains=list("abcd")
    )
    return path


def parts_of(vectors: Path, **fields) -> dict[str, dict[str, set[int]]]:
    """The rows of each domain by part, `held` for those in none, as a run with these fields sees them."""
    found = load_inputs(resolve(RunSpec(dataset=str(vectors), protocol="dg", **fields))).samples
    assert len(found) == sum(SIZES) and (found.x[:, 0] == np.arange(len(found))).all()
    parts: dict[str, dict[str, set[int]]] = {}
    used = {int(row): split for split in ("train", "val", "test") for row in found.rows(split)}
    for row in range(len(found)):
        own = parts.setdefault(found.domains[found.domain[row]], {})
        own.setdefault(used.get(row, "held"), set()).add(row)
    return parts


@pytest.mark.parametrize("unseen", list("abcd"))
def test_dg_holds_out_a_fifth_of_every_domain_as_domainbed_does(vectors: Path, unseen: str) -> None:
    """The others are trained on 80 % and selected on 20 %; 80 % of the unseen one are tested and 20 % unused."""
    for domain, parts in parts_of(vectors, unseen=unseen).items():
        size = SIZES["abcd".index(domain)]
        out = int(size * 0.2)  # as train.py does it
        names = ("held", "test") if domain == unseen else ("val", "train")
        expected = {name: number for name, number in zip(names, (out, size - out), strict=True) if number}
        assert {name: len(rows) for name, rows in parts.items()} == expected


def test_dg_holds_out_the_same_samples_whichever_domain_is_unseen_and_others_with_every_seed(vectors: Path) -> None:
    def held_out(**fields) -> dict[str, set[int]]:
        parts = parts_of(vectors, **fields)
        return {domain: own.get("val", own.get("held", set())) for domain, own in parts.items()}

    first = held_out(unseen="a")
    assert all(held_out(unseen=unseen) == first for unseen in "bcd")
    assert held_out(unseen="a", hparams={"lr": 0.1}, algorithm="erm") == first
    assert first != held_out(unseen="a", seed=1) != held_out(unseen="a", data_seed=1) != first
    often: dict[int, int] = {}
    for seed in range(200):
        for row in held_out(unseen="a", seed=seed)["d"]:
            often[row] = often.get(row, 0) + 1
    assert len(often) == 27 and max(often.values()) < 65 and min(often.values()) > 15  # 200 · 5 / 27 = 37 expected


def test_dg_resumes_on_the_split_of_its_seed_and_refuses_another(vectors: Path, tmp_path: Path) -> None:
    size = {"backbone": "mlp", "width": 8, "steps": 4, "batch_size": 2, "evaluations": 2}
    first = RunSpec(dataset=str(vectors), algorithm="erm", protocol="dg", unseen="d", **size)
    runs = [train_run(replace(first, seed=seed), tmp_path / str(seed)) for seed in (0, 1)]
    checksums = [run.result.data.checksum for run in runs]
    assert checksums[0] != checksums[1]
    for seed, run in enumerate(runs):
        assert run.inputs.facts().checksum == checksums[seed]
        again = train_run(run.folder.spec(), run.folder.path)
        assert again.result == run.result and again.test is not None
        assert len(again.test) == 27 - 5
    with pytest.raises(ValueError, match="seed is 0, not 1"):
        train_run(replace(first, seed=1), tmp_path / "0")


def test_dg_selects_the_evaluation_on_accuracy_averaged_over_domains(vectors: Path, tmp_path: Path) -> None:
    """Not on the pair average: here the two prefer different evaluations."""
    size = {"backbone": "mlp", "width": 8, "steps": 30, "batch_size": 2, "evaluations": 30}
    spec = RunSpec(dataset=str(vectors), algorithm="erm", protocol="dg", unseen="a", hparams={"lr": 0.05}, **size)
    for seed in range(20):
        run = train_run(replace(spec, seed=seed), tmp_path / str(seed))
        by_step, by_pair = {}, {}
        for record in run.folder.records():
            accuracies = []
            for hits, totals in zip(record.validation.hits, record.validation.totals, strict=True):
                if sum(totals):
                    accuracies.append(sum(hits) / sum(totals))
            by_step[record.step] = sum(accuracies) / len(accuracies)
            by_pair[record.step] = record.validation.pair_average
        best = max(by_step.values())
        assert run.result.selected_step == next(step for step, value in by_step.items() if value == best)
        if run.result.selected_step != max(by_pair, key=by_pair.__getitem__):
            return
    raise AssertionError("no seed tells the two apart")


def test_a_redrawn_split_embeds_no_image_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "cache"))
    images = np.random.default_rng(0).integers(0, 255, (20, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "i.npz", x=images, y=[0, 1] * 10, domain=[0] * 10 + [1] * 10)
    frozen = {"backbone": "efficientnet_lite0", "tune": "none", "resolution": 32}
    spec = resolve(RunSpec(dataset=str(tmp_path / "i.npz"), protocol="dg", unseen="0", **frozen))
    reports: list[tuple[str, int, int]] = []
    first = load_inputs(spec).embedded(lambda *report: reports.append(report))
    assert reports
    reports.clear()
    for changes in ({"seed": 1}, {"unseen": "1", "seed": 2}):
        other = load_inputs(replace(spec, **changes)).embedded(lambda *report: reports.append(report))
        assert (other.split != first.split).any() and (other.x == first.x).all()
    assert reports == []


def test_dg_applies_profiles_that_the_run_names_to_its_training_part() -> None:
    counts = prepared(protocol="dg", unseen="signs", labels=("forward:10", "uniform", "uniform")).counts("train")
    assert counts[0, 0] >= 9 * counts[0, 9] > 0
    assert counts[1].min() > 50


def test_every_domain_in_turn(spec: RunSpec) -> None:
    source = load_source(spec)
    assert [s.unseen for s in protocols.parts(replace(spec, protocol="dg"), source)] == list(source.domains)
    assert protocols.parts(spec, source) == [spec]


def test_a_dg_run_trains_without_the_unseen_domain_and_tests_on_it_alone(spec: RunSpec, tmp_path: Path) -> None:
    result = train_run(replace(spec, protocol="dg", unseen=data.load(spec.dataset).domains[1]), tmp_path / "run").result
    counts, tested = np.array(result.counts), np.array(result.test.totals)
    assert counts[1].sum() == 0 and counts[0].sum() > 0
    size = (data.load(spec.dataset).domain == 1).sum()
    assert tested[0].sum() == 0 and tested[1].sum() == size - size // 5
    assert np.array(result.validation.totals)[1].sum() == 0


def test_one_domain_cannot_be_left_out(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", x=np.zeros((6, 2), np.float32), y=[0, 1] * 3, domain=[0] * 6, domains=["only"])
    with pytest.raises(ValueError, match="one domain"):
        load_inputs(resolve(RunSpec(dataset=str(tmp_path / "one.npz"), protocol="dg", unseen="only")))


def test_notes_are_about_the_protocols_split(tmp_path: Path) -> None:
    """Class 2 has no training samples in the split that the data came with, but it has under dg."""
    split = ["train", "train", "test"] * 8
    arrays = {"x": np.random.default_rng(0).normal(size=(24, 2)).astype(np.float32), "y": [0, 1, 2] * 8}
    np.savez(tmp_path / "v.npz", **arrays, domain=[0] * 12 + [1] * 12, split=split)
    spec = resolve(RunSpec(dataset=str(tmp_path / "v.npz")))
    assert any("cannot be learned: 2" in note for note in load_inputs(spec).samples.notes)
    unseen = replace(spec, protocol="dg", unseen="1")
    assert load_inputs(unseen).samples.notes == ()  # and that domain 1 is left out is no gap


@pytest.mark.parametrize(
    ("protocol", "data", "steps", "batch", "evaluated"),
    [  # N_STEPS, batch_size and the steps after which train.py of each evaluates
        ("domainbed", "pacs", 5001, 32, [*range(1, 5001, 300), 5001]),
        ("domainbed", "domain_net", 5001, 32, [*range(1, 5001, 1000), 5001]),
        ("authors", "pacs", 5001, 24, [*range(1, 5001, 100), 5001]),
        ("authors", "domain_net", 15001, 32, [*range(1, 15001, 300), 15001]),
        ("mdlt", "pacs", 5000, 24, [*range(0, 5001, 500)]),
        ("dg", "domain_net", 15000, 32, [*range(0, 15001, 1500)]),
    ],
)
def test_steps_batches_and_evaluations_are_those_of_the_public_code(protocol, data, steps, batch, evaluated) -> None:
    spec = resolve(RunSpec(dataset=data, protocol=protocol, algorithm="erm", backbone="small_cnn"))
    assert (spec.steps, spec.batch_size) == (steps, batch)
    due = protocols.find(protocol).due(spec.steps, spec.evaluations)
    assert sorted(due) == sorted(set(evaluated))
    assert resolve(replace(spec, evaluations=3)).evaluations == 3


def test_the_presets_draw_evaluate_and_select_as_the_public_code(spec: RunSpec, tmp_path: Path) -> None:
    names = ["replacement", "whole_view", "by_share", "selects_on", "spread"]
    found = {n: [getattr(protocols.find(n), name) for name in names] for n in ("mdlt", "authors", "dg", "domainbed")}
    assert found["authors"] == found["domainbed"] == [True, True, True, "average", "se"]
    assert found["mdlt"] == [False, False, False, "pair_average", "sd"]
    assert found["dg"] == [False, False, True, "average", "se"]
    run = train_run(replace(spec, protocol="authors"), tmp_path / "run")
    assert [record.step for record in run.folder.records()] == [1, 20] and run.result.spec.evaluations == 2


def test_with_replacement_every_sample_is_drawn_independently(vectors: Path) -> None:
    source = data.load(vectors)
    for class_balanced in (False, True):
        how = {"batch_size": 30, "class_balanced": class_balanced, "replacement": True, "seed": 1}
        batches = data.DomainBatches(source, **how)
        rows = np.concatenate([batches.batch_rows(step) for step in range(200)])
        assert (
            rows == np.concatenate([data.DomainBatches(source, **how).batch_rows(step) for step in range(200)])
        ).all()
        for d, size in enumerate(SIZES):
            own = rows[source.domain[rows] == d]
            assert len(own) == 6000 and len(np.unique(own)) == size
            if class_balanced:
                assert (np.abs(np.bincount(source.y[own]) / 6000 - 1 / 3) < 0.03).all()
            epochs = own[: 6000 // size * size].reshape(-1, size)  # without replacement, each is a permutation
            assert not all(len(np.unique(epoch)) == size for epoch in epochs[:20])


def test_the_whole_image_is_seen_where_public_code_squeezes_it(tmp_path: Path) -> None:
    """The left and right tenths of a wide image are red, and the central square has neither."""
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:, :6, 0] = pixels[:, -6:, 0] = 255
    for d in "ab":
        for c in "xy":
            (tmp_path / d / c).mkdir(parents=True)
            for i in range(4):
                Image.fromarray(pixels).save(tmp_path / d / c / f"{i}.png")
    shared = {"dataset": str(tmp_path), "algorithm": "erm", "backbone": "small_cnn"}
    seen = {p: load_inputs(resolve(RunSpec(**shared, protocol=p))).samples.x for p in ("mdlt", "authors")}
    assert not seen["mdlt"][0].any() and seen["authors"][0][:, :10, 0].min() > 200
    assert (seen["authors"].take([0]).at_resolution(32, True)[0][:, 0] == [255, 0, 0]).all()
