"""Classifier retraining: a new classifier on class-balanced batches, the paper's decoupling (Kang et al., 2020)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(
    algorithm="erm",
    class_balanced=True,
    differs=(
        "features of images as they are, computed once; the BoDA code augments them and leaves dropout on",
        "the first stage is the run's own; the BoDA code takes seed 0's for all seeds, which narrows the spread",
    ),
)
