"""Image files to pixels: decode, cache, augment."""
