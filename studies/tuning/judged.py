"""A second stage fitted on features, and how good it is on the validation and test samples."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax

from crosstail.data import DomainDataset
from crosstail.metrics import Answers
from crosstail.second_stages import Features, find


def given(dataset: DomainDataset, split: str, z: NDArray[Any]) -> Features:
    """What a second stage is given of a split, from the features (N, F) of all samples."""
    rows = dataset.rows(split)
    group = None if dataset.group is None else dataset.group[rows]
    return Features(z[rows], dataset.y[rows], dataset.domain[rows], dataset.counts("train"), group)


def unanswered(dataset: DomainDataset, split: str) -> Answers:
    """The samples of a split, not answered yet."""
    rows = dataset.rows(split)
    return Answers(
        domains=dataset.domains,
        classes=dataset.classes,
        counts=dataset.counts("train"),
        y=dataset.y[rows],
        domain=dataset.domain[rows],
        row=rows,
        group=None if dataset.group is None else dataset.group[rows],
        predicted=dataset.y[rows],
    )


def answers(of: Answers, scores: NDArray[Any]) -> Answers:
    """The same samples, answered by scores (n, C)."""
    log_p = log_softmax(scores.astype(np.float64), axis=1)
    return replace(of, predicted=log_p.argmax(1), log_p=log_p, true=log_p[np.arange(len(of)), of.y])


def blended(dataset: DomainDataset, z: NDArray[Any]) -> dict[str, Answers]:
    """The answers of `blend` on features (N, F), fitted on those of the training samples."""
    head = find("blend").fit(replace(given(dataset, "train", z), validation=given(dataset, "val", z)))
    parts = [split for split in ("val", "test") if len(dataset.rows(split))]
    return {split: answers(unanswered(dataset, split), given(dataset, split, z).scored(head)) for split in parts}


def probed(dataset: DomainDataset, z: NDArray[Any]) -> dict[str, Answers]:
    """The answers of a linear probe: multinomial regression on standardised features."""
    rows = dataset.rows("train")
    x = torch.from_numpy((z - z[rows].mean(0)) / (z[rows].std(0) + 1e-6)).float()
    weight = torch.zeros(dataset.num_classes, x.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=60, line_search_fn="strong_wolfe")
    y = torch.from_numpy(dataset.y[rows])

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        scores = x[rows] @ weight[:, :-1].T + weight[:, -1]
        value = torch.nn.functional.cross_entropy(scores, y) + 3e-3 * (weight[:, :-1] ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)
    scores = (x @ weight.detach()[:, :-1].T + weight.detach()[:, -1]).numpy()
    return {split: answers(unanswered(dataset, split), scores[dataset.rows(split)]) for split in ("val", "test")}


def figures(said: Answers) -> dict[str, float | None]:
    """Accuracies in percent, and the log loss with every pair weighing the same."""
    found, loss = said.value(), said.value("log_loss").pair_average
    shots = found.shots(said.counts)
    values = {"pairs": found.pair_average, "few": shots["few"], "zero": shots["zero"], "tenth": found.tail}
    return {name: None if v is None else 100 * v for name, v in values.items()} | {"loss": loss}
