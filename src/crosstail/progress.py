"""How long work reports that it advances."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a word for the work, how much of it is done, and how much there is."""
