"""Runs become tables, tables become charts, and both become one document."""
