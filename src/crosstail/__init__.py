"""Crosstail: classifiers for data from several domains, each with its own long tail of classes.

>>> from crosstail import BoDALoss, load
"""

from crosstail.discovery import lazily

__version__ = "0.2.0"

# The public names are those that __init__.pyi imports, and nowhere else; torch takes seconds to import.
__getattr__, __dir__ = lazily(f"{__file__}i")
__all__ = __dir__()
