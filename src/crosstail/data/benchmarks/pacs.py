"""PACS, seven kinds of object in four styles: `pacs`."""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import read_sheet

SHEET = read_sheet(__file__)

load = partial(load_images, SHEET)
