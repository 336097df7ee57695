"""Accuracy per pair, features, and their transferability graph."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.ahead import Courier, ahead, in_thread
from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.data.dataset import UNUSED
from crosstail.losses import PairStatistics
from crosstail.metrics import Answers, PairAccuracy, find
from crosstail.metrics._link import log_probabilities
from crosstail.training.devices import AnyFabric
from crosstail.training.result import SplitAccuracy, Trace, Transferability
from crosstail.training.spec import RunSpec
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.graph import Distance, GraphBuilder

EVALUATED = {"validation": "val", "test": "test"}
BATCH = 256
LEAST = -6e4  # log probability that half precision can store
MOST_PAIRS = 2000  # in a graph
CHUNK = 8192  # samples whose features are in memory at once for the graph


def _map(
    algorithm: Algorithm,
    dataset: DomainDataset,
    rows: NDArray[np.int64],
    function: Callable[..., Sequence[Tensor]],
    *,
    told: bool = False,
    fetched: bool = True,
) -> Iterator[tuple[slice, Sequence[Tensor]]]:
    """A function of the inputs, and if `told` of the domains, in batches: which of the rows, and its values.

    While a batch is computed, the next one is read and sent, and the values of the one before are `fetched`.
    """
    was_training, kind = algorithm.training, dataset.kind
    device = next(chain(algorithm.parameters(), algorithm.buffers())).device  # a fitted head may have buffers only
    courier, raw = Courier(device), kind.picture and device.type != "cpu"

    def read(i: int) -> list[Tensor]:
        part = rows[i : i + BATCH]
        x = torch.from_numpy(dataset.x[part]) if raw else kind.tensor(dataset.x[part])
        return [x, torch.from_numpy(dataset.domain[part])] if told else [x]

    def values(x: Tensor, *domain: Tensor) -> Callable[[], Sequence[Tensor]]:
        found = function(kind.scaled(x) if raw else x, *domain)
        return courier.fetch(found) if fetched else lambda: found

    starts = range(0, len(rows), BATCH)
    inputs = in_thread(read, starts) if raw or kind.decodes else map(read, starts)
    algorithm.eval()
    with torch.no_grad():
        arrived = ahead(map(courier.send, inputs))
        for i, found in zip(starts, ahead(values(*given) for given in arrived), strict=True):
            yield slice(i, i + BATCH), found
    algorithm.train(was_training)


def answers(
    algorithm: Algorithm,
    dataset: DomainDataset,
    rows: NDArray[np.int64],
    *,
    told: bool = False,
    keep: NDArray[np.bool_] | None = None,
    fabric: "AnyFabric | None" = None,
) -> tuple[Answers, NDArray[np.float16]]:
    """The answers for these rows, from the inputs alone or `told` their domain, and the log probabilities to `keep`.

    These are (n, C), of the n rows where `keep` (N,) is true. The processes of a `fabric` share the rows.
    """
    keep = np.zeros(len(rows), bool) if keep is None else keep
    predicted, true = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.float16)
    distance = np.zeros(len(rows), np.float32)
    log_p = np.zeros((int(keep.sum()), dataset.num_classes), np.float16)
    place, own = keep.cumsum() - 1, _share(fabric, len(rows))  # of a row among those that are kept; our rows

    def answer(x: Tensor, domain: Tensor | None = None) -> Sequence[Tensor]:
        z = algorithm.embed(x)
        scores, far = algorithm.scores(z, domain), algorithm.distance_to_training(z, domain)
        said = scores.argmax(1), log_probabilities(scores.float()).clamp(min=LEAST)
        return said if far is None else (*said, far)

    for at, said in _map(algorithm, dataset, rows[own], answer, told=told):
        part = own[at]
        predicted[part], found, *far = (values.numpy() for values in said)
        if far:
            distance[part] = far[0]
        true[part] = found[np.arange(len(found)), dataset.y[rows[part]]]
        log_p[place[part][keep[part]]] = found[keep[part]]
    predicted, true, log_p, distance = (_joined(fabric, of) for of in (predicted, true, log_p, distance))
    names: dict[str, Any] = {"domains": list(dataset.domains), "classes": list(dataset.classes)}
    names |= {"counts": dataset.counts("train"), "y": dataset.y[rows], "domain": dataset.domain[rows], "row": rows}
    group = None if dataset.group is None else dataset.group[rows]
    measured = distance if distance.any() else None
    return Answers(**names, group=group, predicted=predicted, true=true, distance=measured), log_p


def _share(fabric: "AnyFabric | None", number: int) -> NDArray[np.int64]:
    """The part of so many rows that is for this process."""
    return np.arange(fabric.global_rank, number, fabric.world_size) if fabric else np.arange(number)


def _joined(fabric: "AnyFabric | None", own: NDArray[Any]) -> NDArray[Any]:
    """What every process has filled in, where the others have zeros."""
    for i in range(0, len(own) if fabric and fabric.world_size > 1 else 0, CHUNK):
        part = own[i : i + CHUNK]
        # As float32, which has all values of half precision: not every backend adds those.
        wide = part.astype(np.float32) if part.dtype == np.float16 else part
        every: Any = fabric.all_reduce(torch.from_numpy(wide), reduce_op="sum")  # type: ignore[union-attr]
        part[:] = every.cpu().numpy()
    return own


def split_answers(
    algorithm: Algorithm, dataset: DomainDataset, split: str, on: str, fabric: "AnyFabric | None" = None
) -> Answers:
    """The answers on a split, with what a metric to select `on` needs."""
    rows = dataset.rows(split)
    found, log_p = answers(algorithm, dataset, rows, keep=np.full(len(rows), find(on).needs == "log_p"), fabric=fabric)
    return replace(found, log_p=log_p) if len(log_p) else found


def split_accuracies(
    said: Mapping[str, Answers], on: str, kept: Mapping[str, Answers] | None = None
) -> dict[str, SplitAccuracy]:
    """The accuracies on validation and test, with what is selected `on`.

    `kept` are the samples whose log probabilities are known, if that is not all of them.
    """
    known, prepared = dict(kept or said), find(on).prepared
    if prepared:
        known = {name: prepared(of, known["validation"]) for name, of in known.items()}
    return {name: SplitAccuracy.of_answers(of, on, known[name]) for name, of in said.items()}


def on_unseen(
    algorithm: Algorithm, dataset: DomainDataset, spec: RunSpec, fabric: "AnyFabric | None" = None
) -> SplitAccuracy | None:
    """The accuracy on the samples of the unseen domain that are not tested on; None if there are none."""
    if spec.unseen is None or spec.left_out is not None:
        return None
    rows = np.flatnonzero((dataset.split == UNUSED) & (dataset.domain == dataset.domains.index(spec.unseen)))
    found = answers(algorithm, dataset, rows, fabric=fabric)[0]
    return SplitAccuracy.of(PairAccuracy.of(replace(found, group=None))) if len(rows) else None


def features(
    algorithm: Algorithm, dataset: DomainDataset, rows: NDArray[np.int64], fabric: "AnyFabric | None" = None
) -> NDArray[np.float32]:
    """The features (N, F) of these rows, which the processes of a `fabric` share."""
    found, own = np.zeros((len(rows), algorithm.backbone.num_features), np.float32), _share(fabric, len(rows))
    for at, (z,) in _map(algorithm, dataset, rows[own], lambda x: [algorithm.embed(x)]):
        found[own[at]] = z.numpy()
    return _joined(fabric, found)


def stream_statistics(
    algorithm: Algorithm, dataset: DomainDataset, into: PairStatistics, share: tuple[int, int] = (0, 1)
) -> PairStatistics:
    """The exact statistics of the training features, or of a process's share, without keeping the features."""
    rows = dataset.rows("train")[share[0] :: share[1]]
    y, domain = torch.from_numpy(dataset.y[rows]), torch.from_numpy(dataset.domain[rows])
    for at, (z,) in _map(algorithm, dataset, rows, lambda x: [algorithm.embed(x)], fetched=False):
        into.to(z.device).update(z, y[at].to(z.device), domain[at].to(z.device))
    return into


def graph_of(
    algorithm: Algorithm,
    dataset: DomainDataset,
    metric: Distance = "euclidean",
    *,
    kept: NDArray[np.float32] | None = None,
) -> TransferabilityGraph:
    """The transferability graph of a model on the training samples; above MOST_PAIRS, of some classes only.

    `kept` are its `graph_features`, if they are known.
    """
    rows = dataset.rows("train")
    kept = graph_features(algorithm, dataset) if kept is None else kept

    def chunk(i: int) -> tuple[NDArray[np.float32], Tensor, Tensor]:
        part = rows[i : i + CHUNK]
        z = features(algorithm, dataset, part) if kept is None else kept[i : i + CHUNK]
        return z, torch.from_numpy(dataset.y[part]), torch.from_numpy(dataset.domain[part])

    width = algorithm.backbone.num_features
    builder = GraphBuilder(dataset.num_domains, dataset.num_classes, width, metric, MOST_PAIRS)
    for i in range(0, len(rows), CHUNK):
        builder.add_to_means(*chunk(i))
    for i in range(0, len(rows), CHUNK):
        builder.add_edges(*chunk(i))
    return builder.graph()


def graph_features(
    algorithm: Algorithm, dataset: DomainDataset, fabric: "AnyFabric | None" = None
) -> NDArray[np.float32] | None:
    """The features of the training samples, which a graph needs twice; None if they are cheap to compute again."""
    return None if dataset.kind.light else features(algorithm, dataset, dataset.rows("train"), fabric)


def transferability(graph: TransferabilityGraph) -> Transferability:
    """α, β, γ as a result stores them, with standard errors if they are estimated; None instead of NaN."""
    values = [graph.statistics] if graph.standard_errors is None else [graph.statistics, graph.standard_errors]
    plain = [{name: None if math.isnan(v) else v for name, v in one._asdict().items()} for one in values]
    return Transferability(**plain[0], errors=plain[1] if len(plain) > 1 else {})


def traced(algorithm: Algorithm, dataset: DomainDataset, fabric: "AnyFabric | None" = None) -> Trace | None:
    """The graph as `fit --trace` records it: pairs with training samples, domains outermost, to four digits.

    There are no points if the graph has some classes only. Only the main process has it.
    """
    kept = graph_features(algorithm, dataset, fabric)
    if fabric and not fabric.is_global_zero:
        return None
    graph = graph_of(algorithm, dataset, kept=kept)
    points = [] if graph.estimate else [(float(f"{x:.4g}"), float(f"{y:.4g}")) for x, y in graph.layout()]
    return Trace(**msgspec.structs.asdict(transferability(graph)), points=points)
