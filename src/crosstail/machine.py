"""Resources of this machine."""

import os

_used: int | None = None


def cores() -> int:
    """Number of CPU cores available to this process."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return found if _used is None else min(found, _used)


def use(number: int) -> None:
    """Use only some of the cores in this process, since others beside it use the rest."""
    global _used
    _used = max(1, number)
