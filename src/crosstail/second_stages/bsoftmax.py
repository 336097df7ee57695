"""Balanced softmax: a new classifier, trained with the class counts of each sample's domain (Ren et al., 2020)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="bsoftmax", class_balanced=False)
