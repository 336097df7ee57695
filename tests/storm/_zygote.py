"""A process that has imported what commands need, and forks one that runs a command whenever it is asked to.

A line of standard input is a request in JSON: a command to start, or a process to wait for. The answer, a line too, is
its process id, or its exit code, negative for a signal.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import vl_convert  # noqa: F401

import crosstail.prediction.export
import crosstail.report.compare.page
import crosstail.report.run.page
import crosstail.training.embedding
import crosstail.training.fit
import crosstail.training.logs.csv  # noqa: F401
from crosstail import cli


def start(words: list[str], place: str, environment: dict[str, str]) -> int:
    """Fork a process, the first of its session, that runs a command in a folder and writes to output.txt there."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(place)
    os.environ.update(environment)
    output = os.open(f"{place}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1), os.dup2(output, 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    code = 0
    try:
        cli.main(words)
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.nn.Linear(1, 1)(torch.zeros(1, 1)).sum().backward()
    sys.path.insert(0, str(Path(__file__).parent))
    for line in sys.stdin:
        request = json.loads(line)
        if "words" in request:
            answer = start(**request)
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        print(answer, flush=True)
