"""The loop, the second stage, evaluation and resumable runs."""

from typing import TYPE_CHECKING, Any

from crosstail.training.spec import RunSpec

if TYPE_CHECKING:
    from crosstail.training.loop import Diverged
    from crosstail.training.run import fit

__all__ = ["Diverged", "RunSpec", "fit"]


def __getattr__(name: str) -> Any:
    """The rest when it is asked for: it needs torch, which takes seconds to import, and a RunSpec needs none of it."""
    if name in __all__:
        from crosstail.training import loop, run

        return {"Diverged": loop.Diverged, "fit": run.fit}[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
