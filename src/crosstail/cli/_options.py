"""What several verbs make of an option."""

from collections.abc import Sequence

EXAMPLES = {"--hp": "lr=0.001", "--column": "domain=hospital"}


def named(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """An option that is repeated as name=value.

    >>> named("--column", ["domain=site"])
    {'domain': 'site'}
    """
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not value:
            raise ValueError(f"{option} {text!r}: expected name=value, for example {option} {EXAMPLES[option]}")
        found[name] = value
    return found
