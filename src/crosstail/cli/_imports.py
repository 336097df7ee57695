"""Importing torch, once a command is sure that it has something to do."""

import gc
import sys


def import_torch() -> None:
    """Import torch without garbage collection: it takes a sixth less time, and what is imported stays in memory.

    Later collections leave its half a million objects out too.
    """
    if "torch" not in sys.modules:
        gc.disable()
        try:
            import torch  # noqa: F401
        finally:
            gc.freeze()
            gc.enable()
