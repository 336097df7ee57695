"""Who runs the runs of a sweep: one file per launcher, with one `launcher`; its name is what one types."""
