"""Out-of-memory errors that say which setting to reduce."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SIGNS = ("DefaultCPUAllocator", "bad_alloc", "Failed to allocate memory")  # PyTorch, C++, ONNX Runtime


@contextmanager
def explain_out_of_memory(settings: str) -> Iterator[None]:
    """Turn the out-of-memory errors of all devices into one message."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not known and not any(sign in str(error) for sign in SIGNS):
            raise
        raise MemoryError(f"out of memory; reduce {settings}") from error
