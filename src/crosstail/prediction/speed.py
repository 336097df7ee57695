"""What an exported file needs on this machine, measured in a process of its own, as another program would use it."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosstail.prediction.export import Given

SECONDS = 3.0
PROGRAM = """
import json, sys, time
import numpy as np
file, inputs, seconds = sys.argv[1:]
given = dict(np.load(inputs))
if file.endswith(".onnx"):
    import onnxruntime
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    say = lambda: session.run(None, given)
else:
    import torch
    model, tensors = torch.export.load(file).module(), [torch.from_numpy(value) for value in given.values()]
    def say():
        with torch.no_grad():
            model(*tensors)
say()
number, began = 0, time.perf_counter()
while time.perf_counter() - began < float(seconds):
    say()
    number += 1
took = time.perf_counter() - began
try:  # not the peak that getrusage has, which is the parent's if that is larger
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**10
except OSError:
    peak = None
print(json.dumps({"per_second": number * len(given["x"]) / took, "memory": peak}))
"""


@dataclass(frozen=True)
class Need:
    """What a file needs."""

    size: float
    """In MB."""
    per_second: float
    """Inputs per second."""
    memory: float | None
    """Peak of the process in MiB; None where the system does not say."""


def need_of(file: Path, inputs: Given) -> Need:
    """Load an exported file in a new process, and run it on a batch again and again."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(kept := Path(folder) / "inputs.npz", allow_pickle=False, **inputs)
        words = [sys.executable, "-c", PROGRAM, str(file), str(kept), str(SECONDS)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    return Need(size=file.stat().st_size / 1e6, **json.loads(done.stdout.splitlines()[-1]))
