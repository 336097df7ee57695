"""Runs become tables, tables become figures, figures become one page."""
