"""Logs of a run in other formats: one file per format, which defines `LOG`."""

from crosstail.training.logs._log import logged

__all__ = ["logged"]
