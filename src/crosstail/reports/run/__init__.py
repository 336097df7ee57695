"""The page and the model card of one run."""
