"""The paper's decoupling: a new classifier on class-balanced batches (Kang et al., 2020)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="erm", class_balanced=True)
