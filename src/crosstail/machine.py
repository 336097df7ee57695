"""Resources of this machine."""

import os
import sys

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]

_used: int | None = None


def cores() -> int:
    """Number of CPU cores available to this process."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return found if _used is None else min(found, _used)


def use(number: int) -> None:
    """Use only some of the cores in this process, since others beside it use the rest."""
    global _used
    _used = max(1, number)


def memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_used() -> int:
    """The most bytes of memory that this process has used so far."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
