"""Work that is begun before its result is waited for: reading inputs, and copies to and from a device."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
U = TypeVar("U")


def ahead(begun: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Results in order, each waited for only once the next one is begun; taking an item of `begun` begins it."""
    waiting: deque[Callable[[], T]] = deque()
    for finish in begun:
        waiting.append(finish)
        if len(waiting) > 1:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def in_thread(function: Callable[[U], T], items: Iterable[U]) -> Iterator[T]:
    """Results of a function in order, one of them computed on another thread meanwhile."""
    with ThreadPoolExecutor(1, "crosstail-ahead") as pool:
        yield from ahead(pool.submit(function, item).result for item in items)


class Courier:
    """Copies tensors to a device and back while it computes; with a GPU on a stream of its own, from pinned memory."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.asynchronous = device, device.type == "cuda"
        self._stream: Any = torch.cuda.Stream(device) if self.asynchronous else None  # type: ignore[no-untyped-call]
        self._computed: deque[Any] = deque()

    def send(self, tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
        """Begin to copy tensors to the device; the function returned makes what is computed next wait for them."""
        if self.device.type == "cpu":
            return lambda: list(tensors)
        if len(self._computed) > 1:
            self._computed.popleft().synchronize()  # so that the host, which never waits, is two batches ahead at most
        with torch.cuda.stream(self._stream) if self.asynchronous else nullcontext():
            pinned = [tensor.pin_memory() if self.asynchronous else tensor for tensor in tensors]
            moved = [tensor.to(self.device, non_blocking=True) for tensor in pinned]

        def arrive() -> list[Tensor]:
            if self.asynchronous:
                now = torch.cuda.current_stream(self.device)
                self._computed.append(now.record_event())
                now.wait_stream(self._stream)
                for tensor in moved:
                    tensor.record_stream(now)
            return moved

        return arrive

    def fetch(self, tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
        """Begin to copy tensors to the host; the function returned waits for them."""
        if self.device.type == "cpu":
            return lambda: list(tensors)
        found = [tensor.to("cpu", non_blocking=self.asynchronous) for tensor in tensors]  # into pinned memory
        copied = torch.cuda.current_stream(self.device).record_event() if self.asynchronous else None

        def arrive() -> list[Tensor]:
            if copied is not None:
                copied.synchronize()
            return found

        return arrive
