"""Where else a run is written down: one file per kind of log, with one `open_log`; its name is what one types."""

from crosstail.training.logs._follow import logged

__all__ = ["logged"]
