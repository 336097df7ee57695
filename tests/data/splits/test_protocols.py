"""Which samples each protocol trains on, selects on and tests on, and that runs follow it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosstail import data
from crosstail.data.splits.protocols import split_by_protocol
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import fit
from crosstail.training.inputs import folds, load_inputs, load_source
from crosstail.training.resolve import resolve


def prepared(**fields) -> data.DomainDataset:
    """The digits as a run with these fields sees them."""
    return load_inputs(resolve(RunSpec(dataset="digits", **fields))).raw


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


def test_dg_leaves_one_domain_out_whole_and_splits_the_others_80_to_20() -> None:
    whole = data.load("digits", labels=["uniform"])
    found = prepared(protocol="dg", unseen="signs")
    assert len(found) == len(whole)
    for d, name in enumerate(found.domains):
        size = int((whole.domain == d).sum())
        parts = [int(found.counts(split)[d].sum()) for split in ("train", "val", "test")]
        assert parts == ([0, 0, size] if name == "signs" else [size - size // 5, size // 5, 0])


def test_dg_split_depends_on_the_data_seed_alone() -> None:
    dataset = data.load("digits", labels=["uniform"])
    splits = [split_by_protocol(dataset, "dg", unseen="signs", labels=None, seed=seed).split for seed in (3, 3, 4)]
    first, same, other = splits
    assert (first == same).all() and (first != other).any()


def test_dg_applies_profiles_that_the_run_names_to_its_training_part() -> None:
    counts = prepared(protocol="dg", unseen="signs", labels=("forward:10", "uniform", "uniform")).counts("train")
    assert counts[0, 0] >= 9 * counts[0, 9] > 0
    assert counts[1].min() > 50


def test_every_domain_in_turn(spec: RunSpec) -> None:
    source = load_source(spec)
    assert [s.unseen for s in folds(replace(spec, protocol="dg"), source)] == list(source.domains)
    assert folds(spec, source) == [spec]


def test_a_dg_run_trains_without_the_unseen_domain_and_tests_on_it_alone(spec: RunSpec, tmp_path: Path) -> None:
    result = fit(replace(spec, protocol="dg", unseen=data.load(spec.dataset).domains[1]), tmp_path / "run").result
    counts, tested = np.array(result.counts), np.array(result.test.totals)
    assert counts[1].sum() == 0 and counts[0].sum() > 0
    assert tested[0].sum() == 0 and tested[1].sum() == (data.load(spec.dataset).domain == 1).sum()
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
    assert any("cannot be learned: 2" in note for note in load_inputs(spec).raw.notes)
    unseen = replace(spec, protocol="dg", unseen="1")
    assert load_inputs(unseen).raw.notes == ()  # and that domain 1 is left out is no gap
