"""Hits and features of a model, against loops over the samples."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from tests.emulated_gpu import emulated_gpu, to_gpu

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainDataset
from crosstail.losses import PairStatistics
from crosstail.metrics import PairAccuracy
from crosstail.metrics._answers import SAMPLES
from crosstail.training import RunSpec, evaluation, held_out
from crosstail.training.evaluation import (
    answers,
    features,
    graph_of,
    split_answers,
    stream_statistics,
    traced,
    transferability,
)
from crosstail.training.model import build_algorithm
from crosstail.training.result import Transferability
from crosstail.training.run_data import input_shape


@pytest.fixture(params=[1, 7, 256])
def batch(request, monkeypatch):
    """Whatever the size of the batches that the work is done in."""
    monkeypatch.setattr("crosstail.training.evaluation.BATCH", request.param)


@pytest.fixture
def parts():
    """50 vectors in 2 domains × 3 classes, and an untrained model of them."""
    rng = np.random.default_rng(0)
    split = np.array(["train"] * 30 + ["test"] * 20)
    y, domain = rng.integers(0, 3, 50), rng.integers(0, 2, 50)
    dataset = DomainDataset(
        "made", rng.normal(size=(50, 4)).astype(np.float32), y, domain, split, tuple("abc"), tuple("de")
    )
    return dataset, build_algorithm(
        RunSpec(dataset="made", algorithm="boda", backbone="mlp", width=5),
        input_shape(dataset),
        dataset.counts("train"),
    ).train()


def assert_same(one, other):
    for name in SAMPLES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def one_by_one(function, dataset, rows):
    with torch.no_grad():
        return [function(torch.from_numpy(dataset.x[row : row + 1]))[0] for row in rows]


def test_hits_and_totals(batch, parts):
    dataset, algorithm = parts
    hits, totals = np.zeros((2, 3), int), np.zeros((2, 3), int)
    for row, scores in zip(range(30, 50), one_by_one(algorithm, dataset, range(30, 50)), strict=True):
        pair = dataset.domain[row], dataset.y[row]
        totals[pair] += 1
        hits[pair] += int(scores.argmax()) == dataset.y[row]
    found = PairAccuracy.of(split_answers(algorithm, dataset, "test", "pair_average"))
    assert (found.hits == hits).all() and (found.totals == totals).all() and hits.any()


def test_hits_with_the_domain_known(batch, parts):
    dataset, algorithm = parts
    bias = torch.tensor([[5.0, 0, 0], [0, 0, 5.0]])
    algorithm.scores = lambda z, domain=None: algorithm.head(z) + (0 if domain is None else bias[domain])
    hits = np.zeros((2, 3), int)
    for row, scores in zip(range(30, 50), one_by_one(algorithm, dataset, range(30, 50)), strict=True):
        d, y = dataset.domain[row], dataset.y[row]
        hits[d, y] += int((scores + bias[d]).argmax()) == y
    rows = dataset.rows("test")
    said, log_p = answers(algorithm, dataset, rows, told=True, keep=np.ones(len(rows), bool))
    assert (said.true == log_p[np.arange(len(rows)), dataset.y[rows]]).all()
    found = PairAccuracy.of(said)
    assert (found.hits == hits).all() and hits.any()
    assert (found.hits != PairAccuracy.of(split_answers(algorithm, dataset, "test", "pair_average")).hits).any()
    for row, told in zip(rows, log_p, strict=True):
        scores = one_by_one(algorithm, dataset, [row])[0] + bias[dataset.domain[row]]
        np.testing.assert_allclose(told, scores.log_softmax(-1).detach(), rtol=2e-3, atol=1e-3)


def test_probabilities_of_some_and_predictions_of_all_held_out_samples(batch, parts, monkeypatch):
    """With very many classes, the probabilities of some samples are kept; everything else is of all of them."""
    dataset, algorithm = parts
    dataset = replace(dataset, split=np.where(np.arange(50) < 20, "train", np.where(np.arange(50) < 30, "val", "test")))
    bias = torch.tensor([[5.0, 0, 0], [0, 0, 5.0]])
    algorithm.scores = lambda z, domain=None: algorithm.head(z) + (0 if domain is None else bias[domain])
    how = {"informed": True, "shots": (100, 20)}
    whole, every = held_out.held_out(algorithm, dataset, **how)
    assert every.every.row.tolist() == list(range(20, 50)) and every.test.row.tolist() == list(range(30, 50))
    monkeypatch.setattr(held_out, "LEAST", 1)
    monkeypatch.setattr(held_out, "MOST", 3 * 12)
    less, some = held_out.held_out(algorithm, dataset, **how)
    assert len(some) == 12 and len(less) == 30
    for name in ("validation", "test"):
        own = getattr(some, name)
        same = getattr(every, name).keep(np.isin(getattr(every, name).row, own.row))
        for one, other in ((same, own), (same.told, own.told)):
            assert other.log_p.shape == (len(own), 3)
            assert_same(one, other)
        assert_same(getattr(whole, name), getattr(less, name))
        assert_same(getattr(whole, name).told, getattr(less, name).told)


def test_an_empty_split_has_no_accuracy(parts):
    dataset, algorithm = parts
    found = PairAccuracy.of(split_answers(algorithm, dataset, "val", "pair_average"))
    assert not found.totals.any() and found.pair_average is None


def test_features(batch, parts):
    dataset, algorithm = parts
    rows = np.array([3, 48, 3, 17])
    expected = torch.stack(one_by_one(algorithm.backbone, dataset, rows)).numpy()
    np.testing.assert_allclose(features(algorithm, dataset, rows), expected, rtol=1e-5, atol=1e-6)
    assert features(algorithm, dataset, rows[:0]).shape == (0, 5)


def test_processes_share_the_rows_that_are_embedded_and_scored(parts, monkeypatch):
    dataset, algorithm = parts
    rows, seen = dataset.rows("test"), []
    monkeypatch.setattr(evaluation, "CHUNK", 7)

    def all_reduce(values, reduce_op):  # of processes that have not got further than this one
        seen.append(len(values))
        return values

    shares = [SimpleNamespace(global_rank=i, world_size=3, all_reduce=all_reduce) for i in range(3)]
    found = [features(algorithm, dataset, rows, share) for share in shares]
    np.testing.assert_allclose(sum(found), features(algorithm, dataset, rows), rtol=1e-6)
    assert [set(np.flatnonzero(part.any(1)) % 3) for part in found] == [{0}, {1}, {2}] and seen == 3 * [7, 7, 6]
    whole, _ = answers(algorithm, dataset, rows)
    said = [answers(algorithm, dataset, rows, fabric=share)[0].predicted for share in shares]
    assert (sum(said) == whole.predicted).all()


def test_statistics_of_a_full_pass_are_those_of_the_training_samples(batch, parts):
    dataset, algorithm = parts
    found = stream_statistics(algorithm, dataset, PairStatistics(2, 3, 5))
    z = torch.stack(one_by_one(algorithm.backbone, dataset, range(30)))
    for d, c in np.ndindex(2, 3):
        own = [i for i in range(30) if (dataset.domain[i], dataset.y[i]) == (d, c)]
        assert int(found.counts[d, c]) == len(own) > 0
        torch.testing.assert_close(found.mean[d, c], z[own].mean(0))


def test_the_model_is_evaluated_in_evaluation_mode_and_goes_on_in_training_mode(parts):
    dataset, algorithm = parts
    modes = []
    algorithm.backbone.register_forward_hook(lambda module, args, z: modes.append((module.training, z.requires_grad)))
    for work in (
        lambda: PairAccuracy.of(split_answers(algorithm, dataset, "test", "pair_average")),
        lambda: features(algorithm, dataset, np.arange(5)),
        lambda: stream_statistics(algorithm, dataset, algorithm.statistics()),
    ):
        for mode in (True, False):
            algorithm.train(mode)
            work()
            assert algorithm.training == mode
    assert modes == [(False, False)] * 6


def test_a_graph_of_too_many_pairs_is_that_of_some_classes(parts, monkeypatch):
    dataset, algorithm = parts
    whole = graph_of(algorithm, dataset)
    assert len(whole.pairs) == 6 and traced(algorithm, dataset).points
    monkeypatch.setattr("crosstail.training.evaluation.MOST_PAIRS", 4)
    part = graph_of(algorithm, dataset)
    assert len(part.pairs) == 4 and traced(algorithm, dataset).points == []
    edges = {
        (*one, *other): whole.matrix[i, j] for i, one in enumerate(whole.pairs) for j, other in enumerate(whole.pairs)
    }
    for i, one in enumerate(part.pairs):
        for j, other in enumerate(part.pairs):
            assert part.matrix[i, j] == pytest.approx(edges[(*one, *other)])
    assert part.statistics == pytest.approx(whole.statistics, rel=0.1)
    stored = [transferability(graph) for graph in (whole, part)]
    assert stored[0].errors == {} and set(stored[1].errors) == {"alpha", "beta", "gamma"}
    assert msgspec.convert(msgspec.to_builtins(stored[1]), Transferability) == stored[1]


def test_a_gpu_gives_the_answers_of_the_cpu_and_is_read_once_per_result(monkeypatch):
    rng = np.random.default_rng(0)
    x, y, domain = rng.integers(0, 256, (30, 12, 12, 3), dtype=np.uint8), np.arange(30) % 3, np.arange(30) // 15
    dataset = DomainDataset("d", x, y, domain, np.full(30, "test"), ("a", "b", "c"), ("p", "q"))
    monkeypatch.setattr("crosstail.training.evaluation.BATCH", 8)

    def model():
        torch.manual_seed(0)
        return algorithms.build("mtl", backbones.build("small_cnn", (3, 12, 12), 8), Task(torch.ones(2, 3).long()))

    def answered(model):
        said, log_p = answers(model, dataset, np.arange(30), told=True, keep=np.arange(30) % 2 == 0)
        return said.predicted, said.true, log_p, features(model, dataset, np.arange(30))

    expected = answered(model())
    with emulated_gpu() as gpu:
        found = answered(to_gpu(model()))
    assert len(gpu.reads) == 4 * 3  # batches; predicted classes and log probabilities, then features
    for on_cpu, on_gpu in zip(expected, found, strict=True):
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-2 if on_cpu.dtype == np.float16 else 1e-5, atol=1e-6)
