"""crosstail demo."""


def demo() -> None:
    """Demo."""
