"""Check algorithms on the command line: python -m crosstail.testing ./mine.py."""

import sys

from crosstail.testing import check_algorithm

if len(sys.argv) != 2:
    sys.exit("usage: python -m crosstail.testing NAME or FILE")
try:
    check_algorithm(sys.argv[1])
except (AssertionError, ValueError, RuntimeError) as error:
    sys.exit(f"{type(error).__name__}: {error}")
