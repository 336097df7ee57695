"""What a method costs, as its algorithm declares it."""

from dataclasses import dataclass, fields

from crosstail import algorithms, second_stages
from crosstail.algorithms import Algorithm
from crosstail.second_stages import FittedStage, TrainedStage
from crosstail.training.spec import split_method


@dataclass(frozen=True, order=True)
class MethodCost:
    """The cost of a method, most important first; seconds would depend on machine load."""

    passes: float  # over the batch, per step
    stages: int  # that are trained
    fitted: bool  # whether it has a second stage that is fitted
    searched: int  # hyperparameters of its own to search


def cost(method: str) -> MethodCost:
    """The cost of a method, as its algorithm declares it.

    >>> cost("erm:retrain")
    MethodCost(passes=1.0, stages=2, fitted=False, searched=0)
    >>> cost("mldg:ncm")
    MethodCost(passes=2.0, stages=1, fitted=True, searched=1)
    """
    name, second_stage = split_method(method)
    algorithm, stage = algorithms.find(name), second_stages.find(second_stage) if second_stage else None
    common = {f.name for f in fields(Algorithm.Hparams)}
    searched = [f for f in fields(algorithm.Hparams) if f.metadata["search"] is not None and f.name not in common]
    stages = 2 if isinstance(stage, TrainedStage) else 1
    return MethodCost(algorithm.passes, stages, isinstance(stage, FittedStage), len(searched))
