"""Runs that are stopped as by Ctrl-C."""

import pytest

from crosstail.training.fit import train_run


def stopping_at(*point):
    """A progress callback that stops the run after a step of a stage."""

    def progress(what, done, total):
        if (what, done) == point:
            raise KeyboardInterrupt

    return progress


def stop(spec, folder, *point):
    """Fit until a step of a stage."""
    with pytest.raises(KeyboardInterrupt):
        train_run(spec, folder, progress=stopping_at(*point))
