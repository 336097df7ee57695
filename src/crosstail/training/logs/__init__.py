"""Logs of a run in other formats: one file per kind, with an `open_log`; its name is what one types."""

from crosstail.training.logs._follow import logged

__all__ = ["logged"]
