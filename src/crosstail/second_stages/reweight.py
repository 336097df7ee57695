"""Reweighted retraining: a new classifier, samples weighted by 1 / n of class and domain (Yang et al., 2023)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="reweight", class_balanced=False)
