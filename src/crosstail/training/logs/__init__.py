"""Logs of a run in other formats: one file per format, which defines `open_log`."""

from crosstail.training.logs._follow import logged

__all__ = ["logged"]
