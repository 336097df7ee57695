"""Tuning the last stage of a pretrained network, and the view that it gets: docs/results/tuning.md."""
