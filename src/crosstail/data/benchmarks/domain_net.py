"""DomainNet, 345 kinds of thing in six styles: `domain_net`."""

from functools import partial

from crosstail.data.benchmarks._load import load_images
from crosstail.data.benchmarks._sheet import read_sheet

SHEET = read_sheet(__file__)

load = partial(load_images, SHEET)
