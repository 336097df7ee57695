"""What the files of algorithms need, from one place."""

from crosstail.algorithms._algorithm import Backward, descend, first_step, slopes, total
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform, hp, when
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch

__all__ = [
    "ERM",
    "Backward",
    "Choice",
    "DomainBatch",
    "LogUniform",
    "Uniform",
    "descend",
    "first_step",
    "hp",
    "slopes",
    "total",
    "when",
]
