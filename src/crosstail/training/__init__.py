"""Runs: described by a spec, trained by the loop, kept in a folder, resumable at any moment."""

from crosstail.training.spec import RunSpec

__all__ = ["RunSpec"]
