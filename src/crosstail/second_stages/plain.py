"""Plain retraining: a new classifier on batches as they come; `retrain` without its balance (Yang et al., 2023)."""

from crosstail.second_stages._stage import TrainedStage

STAGE = TrainedStage(algorithm="erm", class_balanced=False)
