"""Memory for batches that is reused once a batch is gone."""

import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class BufferPool:
    """Float arrays of one shape, reused once nothing refers to them: allocating 58 MB takes as long as cropping it."""

    def __init__(self, keep: int) -> None:
        self._free: deque[Floats] = deque(maxlen=keep)

    def take(self, shape: tuple[int, ...]) -> Floats:
        """An uninitialised array, whose memory returns to the pool when the array and its tensors are gone."""
        memory = self._free.popleft() if self._free else None
        if memory is None or memory.shape != shape:
            memory = np.empty(shape, np.float32)
        # A tensor made by `from_numpy` keeps this view alive, and so does every view of that tensor. (NumPy views of
        # it do not: they refer to `memory` directly.)
        lease = memory.view()
        weakref.finalize(lease, self._free.append, memory).atexit = False
        return lease
