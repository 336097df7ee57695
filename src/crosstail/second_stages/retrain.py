"""Classifier retraining: a new classifier on class-balanced batches, the paper's decoupling (Kang et al., 2020)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="erm", class_balanced=True)
