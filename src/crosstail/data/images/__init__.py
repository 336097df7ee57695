"""Image files to pixels: decode, cache, augment."""

from crosstail.data.images.augment import Augment
from crosstail.data.images.broken import check_images
from crosstail.data.images.decode import SUFFIXES, BrokenImage, read_image
from crosstail.data.images.files import ImageFiles, default_workers

__all__ = ["SUFFIXES", "Augment", "BrokenImage", "ImageFiles", "check_images", "default_workers", "read_image"]
