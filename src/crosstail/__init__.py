"""Crosstail: classifiers for data from several domains, each with its own long tail of classes.

>>> from crosstail import BoDALoss, load
"""

import importlib
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {  # and in __init__.pyi, for type checkers
    "BoDALoss": "losses",
    "CrosstailClassifier": "sklearn",
    "DomainDataset": "data",
    "PairAccuracy": "metrics",
    "PairStatistics": "transfer",
    "RunSpec": "training",
    "TransferabilityGraph": "transfer",
    "audit": "workflows.audit",
    "boda_loss": "losses",
    "compare": "workflows.compare",
    "demo": "workflows.demo",
    "embed": "workflows.embed",
    "evaluate": "workflows.evaluate",
    "export": "workflows.export",
    "fit": "workflows.fit",
    "graph": "workflows.graph",
    "load": "data",
    "predict": "workflows.predict",
    "race": "workflows.race",
    "report": "workflows.report",
    "select": "workflows.select",
    "sweep": "workflows.sweep",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    """A public name when it is asked for: torch takes seconds to import, and most programs need few of them."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
