"""Speed and memory relative to reference implementations: `python -m bench [--quick] [NAME ...]` from the root."""
