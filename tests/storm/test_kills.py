"""Commands that are killed at random moments: the same command afterwards ends as if nothing had happened."""

import random
import signal
import time

import pytest

from .conftest import COMMANDS, QUICK, outcome

KILLS = 100
"""Of `make storm`, in all, at random moments."""
CHANGES = 5
"""More kills of each command, each right before a file is changed."""


def killed(name, started, place, seconds, chance, most):
    """How often a command was killed, if it did not end before; then it is run to its end."""
    kills = 0
    for _ in range(most):
        command = started(COMMANDS[name], place)
        time.sleep(chance.uniform(0, seconds))
        command.kill()
        kills += command.wait() == -signal.SIGKILL
    command = started(COMMANDS[name], place)
    assert command.wait() == 0, command.output.read_text()
    return kills


@pytest.mark.parametrize("name", [*QUICK])
def test_a_kill_at_a_random_moment(name, fresh, started, undisturbed):
    expected, seconds = undisturbed(name)
    place = fresh()
    killed(name, started, place, seconds, random.Random(name), most=1)
    assert outcome(place) == expected


@pytest.mark.storm
@pytest.mark.parametrize("name", COMMANDS)
def test_many_kills(name, fresh, started, undisturbed, record_property):
    expected, seconds = undisturbed(name)
    chance, kills = random.Random(name), 0
    while kills < KILLS / len(COMMANDS):
        place = fresh()
        kills += killed(name, started, place, seconds, chance, most=2)
        assert outcome(place) == expected
    record_property("kills", kills)


@pytest.mark.storm
@pytest.mark.parametrize("name", COMMANDS)
def test_kills_right_before_a_file_is_changed(name, fresh, started, undisturbed, record_property):
    """Random moments rarely fall between two changes of files that follow each other; these always do."""
    expected, _ = undisturbed(name)
    chance, kills, most = random.Random(name), 0, 100
    while kills < CHANGES:
        place, change = fresh(), chance.randint(1, most)
        if started(COMMANDS[name], place, change=change).wait() == -signal.SIGKILL:
            kills += 1
            command = started(COMMANDS[name], place)
            assert command.wait() == 0, command.output.read_text()
        else:
            most = change - 1  # it changes fewer files
        assert outcome(place) == expected, change
    record_property("kills", kills)
