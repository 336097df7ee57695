"""On a full disk, one sentence names the file, nothing that was there is lost, and the same command completes."""

import os
import shutil
import subprocess

import pytest

from .conftest import COMMANDS, outcome


@pytest.fixture
def disk(ground, tmp_path):
    """The ground on a small file system of its own, with a function that leaves so much room on it."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False) if shutil.which("mount") else None
    if done is None or done.returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        shutil.copytree(ground, place, dirs_exist_ok=True)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk, room):
    """Leave so many bytes."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - room))
    return ballast


def bytes_of(place):
    return {file.relative_to(place): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def check(name, ground, disk, started, expected, rooms):
    failed, there = 0, {file: content for file, content in bytes_of(ground).items() if file.parts[0] != "cache"}
    for room in rooms:
        ballast = fill(disk, room)
        command = started(COMMANDS[name], disk)
        code, said = command.wait(), command.output.read_text().strip().splitlines()
        ballast.unlink()
        after = bytes_of(disk)
        assert {file: after.get(file) for file in there} == there and not [f for f in after if ".part." in f.name]
        if code:
            failed += 1
            assert code == 1 and "Traceback" not in "".join(said), said
            sentences = [line for line in said if line.startswith(("error: ", "failed: "))]  # the second: of a race
            assert sentences and (name == "race" or len(sentences) == 1), said
            out = COMMANDS[name].partition("--out ")[2].split()[0]
            for sentence in sentences:
                assert "No space left on device" in sentence and (out in sentence or "cache" in sentence), said
    assert failed
    command = started(COMMANDS[name], disk)
    assert command.wait() == 0, command.output.read_text()
    assert outcome(disk) == expected
    ballast = fill(disk, 0)
    started(COMMANDS[name], disk).wait()
    ballast.unlink()
    assert outcome(disk) == expected  # what is finished stays


def test_a_report_on_a_full_disk(ground, disk, started, undisturbed):
    check("report", ground, disk, started, undisturbed("report")[0], rooms=(20_000,))


@pytest.mark.storm
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_at_several_moments(name, ground, disk, started, undisturbed):
    rooms = (0, 25_000, 200_000, 300_000, 600_000) if name == "race" else (0, 6_000, 25_000, 100_000)
    check(name, ground, disk, started, undisturbed(name)[0], rooms)
