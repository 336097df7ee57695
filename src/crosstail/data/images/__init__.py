"""From image files to pixels: decode, cache, augment."""
