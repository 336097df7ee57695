"""Crosstail: classifiers for data from several domains, each with its own long tail of classes."""

__version__ = "0.1.0.dev0"
