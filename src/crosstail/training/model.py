"""From a spec to a network: untrained, or with the weights of a finished run."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from crosstail import algorithms, backbones, second_stages
from crosstail.algorithms import Algorithm, Task
from crosstail.backbones import Backbone
from crosstail.data import DomainDataset
from crosstail.second_stages import FittedModel, FittedStage
from crosstail.training import user_file
from crosstail.training.folder import MODEL, RunFolder
from crosstail.training.resolve import trained_backbone
from crosstail.training.run_data import Inputs, input_shape, load_inputs
from crosstail.training.spec import RunSpec


def build_algorithm(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """The untrained model of a resolved spec, for inputs of one shape and training counts (D, C)."""
    torch.manual_seed(spec.seed)
    backbone = _build_backbone(spec, shape)
    algorithm = algorithms.build(spec.algorithm, backbone, Task(torch.from_numpy(counts)), spec.hparams)
    algorithm.low_precision = spec.precision == "bf16"
    return algorithm


def _build_backbone(spec: RunSpec, shape: tuple[int, ...]) -> Backbone:
    name = trained_backbone(spec)
    if name == "identity" and len(shape) > 1:
        raise ValueError(
            f"{spec.algorithm} trains no backbone: add --tune none, or choose an algorithm that trains one"
        )
    if spec.tune == "none":
        return backbones.build(name, shape, spec.width)
    if spec.stages:
        whole = backbones.build(name, shape, weights=spec.weights, resolution=spec.resolution)
        tail = whole.divided(spec.stages).tail
        if spec.head == "linear":
            return tail
        head = backbones.build("mlp", (tail.num_features,), spec.width)
        return Backbone(nn.Sequential(tail, head), head.num_features)
    return backbones.build(name, shape, spec.width, weights=spec.weights, resolution=spec.resolution)


def build_final_model(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """The final model of a run before its weights are loaded; after a second stage, with that stage's classifier."""
    spec = replace(spec, weights=backbones.RANDOM)  # those that training began with need not be found
    if not spec.second_stage:
        return build_algorithm(spec, shape, counts)
    stage, task = second_stages.find(spec.second_stage), Task(torch.from_numpy(counts))
    backbone = _build_backbone(spec, shape)
    head = stage.head(backbone.num_features, *counts.shape) if stage.head else None
    if isinstance(stage, FittedStage):
        assert head is not None
        model: Algorithm = FittedModel(backbone, task, head)
    else:
        model = algorithms.build(stage.algorithm, backbone, task)
        model.head = head or model.head
    model.low_precision = spec.precision == "bf16"
    return model


def load_model(folder: RunFolder, dataset: DomainDataset, trust: bool = False) -> Algorithm:
    """The trained model of a finished run; `trust` allows running users' files that the run contains."""
    spec = user_file.from_copy(folder.spec(), folder, trust)
    algorithm = build_final_model(spec, input_shape(dataset), dataset.counts("train"))
    load_weights(algorithm, folder)
    return algorithm


def load_data(folder: RunFolder, trust: bool = False) -> Inputs:
    """The data of a run; `trust` allows running a user's file that loads them."""
    return load_inputs(user_file.from_copy(folder.spec(), folder, trust, user_file.DATA))


def load_weights(algorithm: Algorithm, folder: RunFolder) -> None:
    """Load the weights of a finished run into its model."""
    try:
        algorithm.load_state_dict(folder.weights())
    except RuntimeError as error:
        first = " ".join(str(error).split(":", 1)[-1].split())[:200]
        raise ValueError(f"{folder.path / MODEL} does not fit the run's spec.json and result.json: {first}") from None
