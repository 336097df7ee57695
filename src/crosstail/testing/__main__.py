"""Check a part on the command line: python -m crosstail.testing ./mine.py."""

import sys
import traceback

from crosstail import discovery
from crosstail.testing import check_algorithm, check_file

if len(sys.argv) != 2:
    sys.exit("usage: python -m crosstail.testing NAME or FILE")
try:
    (check_file if sys.argv[1].endswith(".py") else check_algorithm)(sys.argv[1])
except Exception as error:
    if frames := discovery.own_frames(error):
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
    elif not isinstance(error, (AssertionError, ValueError)):
        raise
    sys.exit(f"{type(error).__name__}: {error}")
