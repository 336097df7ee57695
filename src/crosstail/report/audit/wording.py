"""Numbers in sentences."""


def several(n: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> several(1, "pair"), several(2000, "pair"), several(2, "class", "classes")
    ('1 pair', '2,000 pairs', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def has(n: int) -> str:
    """The verb to go with a number."""
    return "has" if n == 1 else "have"


def sentence(text: str) -> str:
    """With a capital and a full stop.

    >>> sentence("2 files were left out"), sentence("they are broken.")
    ('2 files were left out.', 'They are broken.')
    """
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
