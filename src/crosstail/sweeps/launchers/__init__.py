"""Launchers execute the runs of a sweep: one file each, with a function `launcher`; the file's name is its name."""
