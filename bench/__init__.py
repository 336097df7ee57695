"""Speed and memory beside a stated peer, as ratios: `python -m bench [--quick] [NAME ...]` from the root."""
