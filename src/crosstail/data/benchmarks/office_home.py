"""Office-Home, 65 everyday objects in four styles: `office_home`."""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import read_sheet

SHEET = read_sheet(__file__)

load = partial(load_images, SHEET)
