"""Peak memory of a function, measured in its own process.

`python -m bench._memory MODULE FUNCTION [ARGUMENT ...]` calls it with these strings and prints a JSON object.
"""

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Usage:
    """Memory that a function used on top of what the process held before, and its duration."""

    resident: float  # MiB, exact peak including mapped files
    anonymous: float  # MiB, without mapped files, sampled every 2 ms
    seconds: float
    cpu_seconds: float  # of all threads: on a busy machine, more repeatable than seconds


def usage_of(module: str, function: str, *arguments: str) -> Usage:
    """Call a function of a module in a fresh process."""
    command = [sys.executable, "-m", "bench._memory", module, function, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False)
    if done.returncode:
        raise RuntimeError(f"{module}.{function} failed in its own process:\n{done.stderr}")
    return Usage(**json.loads(done.stdout.splitlines()[-1]))


def _kibibytes(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"{STATUS} has no {field}: memory is measured on Linux only")


def main(module: str, function: str, *arguments: str) -> None:
    """Measure a function and print its usage."""
    target = getattr(import_module(module), function)
    RESET.write_text("5")  # resets the peak to the current resident size
    resident, anonymous = _kibibytes("VmRSS"), _kibibytes("RssAnon")
    peak, finished = anonymous, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not finished.wait(0.002):
            peak = max(peak, _kibibytes("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, cpu = time.perf_counter(), time.process_time()
    try:
        target(*arguments)
    finally:
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        finished.set()
        watcher.join()
    usage = Usage((_kibibytes("VmHWM") - resident) / 1024, (peak - anonymous) / 1024, seconds, cpu)
    print(json.dumps(asdict(usage)))


if __name__ == "__main__":
    main(*sys.argv[1:])
