"""The page of a run from other training loops: a function, and callbacks for Lightning and Hugging Face's Trainer."""

from crosstail.reports.external import write_report

__all__ = ["write_report"]
