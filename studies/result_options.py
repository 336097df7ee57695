"""Options that the scripts for docs/results have in common."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path


def result_options(description: str | None, out: str, data: str = "../shared/data") -> ArgumentParser:
    """Where the data are, and where runs are kept."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(data))
    parser.add_argument("--out", type=Path, default=Path(out))
    return parser
