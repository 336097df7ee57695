"""Plain retraining: a new classifier on batches as they come; `retrain` without class balancing (Yang et al., 2023)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="erm", class_balanced=False)
