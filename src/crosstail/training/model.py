"""From a spec to a network: untrained, or with the weights of a finished run."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail import algorithms, backbones, second_stages
from crosstail.algorithms import Algorithm, Task
from crosstail.data import DomainDataset
from crosstail.training import own_code
from crosstail.training.evaluation import features
from crosstail.training.folder import RunFolder
from crosstail.training.inputs import input_shape
from crosstail.training.spec import HEADS, RunSpec


def build_algorithm(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """The untrained model of a resolved spec, for inputs of one shape and training counts (D, C)."""
    torch.manual_seed(spec.seed)
    if spec.freeze:
        backbone = backbones.build(HEADS[spec.head], shape, spec.width)
    else:
        assert spec.backbone is not None
        backbone = backbones.build(spec.backbone, shape, spec.width, weights=spec.weights, resolution=spec.resolution)
    return algorithms.build(spec.algorithm, backbone, Task(torch.from_numpy(counts)), spec.hparams)


def build_final_model(spec: RunSpec, shape: tuple[int, ...], counts: NDArray[np.int64]) -> Algorithm:
    """What a run ends with, before its weights are loaded: after a second stage, that stage's plain classifier."""
    spec = replace(spec, weights=backbones.RANDOM)  # those that training began with need not be found
    if spec.second_stage:
        spec = replace(spec, algorithm=second_stages.find(spec.second_stage).algorithm, hparams={})
    return build_algorithm(spec, shape, counts)


def build_second_stage(
    spec: RunSpec, algorithm: Algorithm, dataset: DomainDataset
) -> tuple[Algorithm, DomainDataset, bool]:
    """A new classifier, the features it is trained on (each sample embedded once), and whether classes are balanced."""
    assert spec.second_stage is not None
    stage = second_stages.find(spec.second_stage)
    seen = dataset
    if not isinstance(algorithm.backbone.layers, torch.nn.Identity):
        seen = dataset.with_x(features(algorithm, dataset, np.arange(len(dataset))))
    shared = {name: value for name, value in spec.hparams.items() if name in ("lr", "weight_decay")}
    torch.manual_seed(spec.seed)
    backbone = backbones.build("identity", input_shape(seen))
    return algorithms.build(stage.algorithm, backbone, algorithm.task, shared), seen, stage.class_balanced


def load_model(folder: RunFolder, dataset: DomainDataset, trust: bool = False) -> Algorithm:
    """The trained model of a finished run; `trust` allows running an algorithm file that the run contains."""
    spec = own_code.from_copy(folder.spec(), folder, trust)
    algorithm = build_final_model(spec, input_shape(dataset), dataset.counts("train"))
    algorithm.load_state_dict(folder.weights())
    return algorithm
