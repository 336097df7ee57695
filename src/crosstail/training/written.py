"""Code of users that writes into a batch, which other parts of a run read too: found, and named with its line."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode

from crosstail.data import DomainBatch


class _Watch(TorchFunctionMode):
    """Refuses writes into a batch at the call that does it, so that the traceback has its line."""

    def __init__(self, batch: DomainBatch) -> None:
        super().__init__()
        self.tensors = {name: getattr(batch, name) for name in ("x", "y", "domain")}
        self.versions = {name: tensor._version for name, tensor in self.tensors.items()}

    def check(self) -> None:
        for name, tensor in self.tensors.items():
            if tensor._version != self.versions[name]:
                raise ValueError(f"writes into batch.{name}, which other parts read too: use batch.{name}.clone()")

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        self.check()
        return found


@contextmanager
def unwritten(batch: DomainBatch, again: Callable[[], Any]) -> Iterator[None]:
    """Refuse code that has written into a batch, after doing it `again` to find the line."""
    watch = _Watch(batch)
    try:
        yield
    finally:
        try:
            watch.check()
        except ValueError:
            with _Watch(batch):
                again()
            raise
