"""Processes of a session, such as a program and the workers that it has started."""

import time
from pathlib import Path


def alive(session):
    """The processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(session):
    """Wait for the end of all processes of a session."""
    for _ in range(1500):
        if not alive(session):
            return True
        time.sleep(0.02)
    return False
