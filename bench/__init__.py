"""Speed and memory relative to a stated baseline: `python -m bench [--quick] [NAME ...]` from the root."""
