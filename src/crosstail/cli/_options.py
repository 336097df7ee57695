"""Options that are typed as name=value, any number of times."""

EXAMPLES = {"--hp": "lr=0.001", "--column": "domain=hospital"}


def named_values(option: str, texts: list[str] | None) -> dict[str, str]:
    """The values by name.

    >>> named_values("--hp", ["lr=0.01", "nu=1"])
    {'lr': '0.01', 'nu': '1'}
    """
    values = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not value:
            raise ValueError(f"{option} {text!r}: expected name=value, for example {option} {EXAMPLES[option]}")
        values[name] = value
    return values
