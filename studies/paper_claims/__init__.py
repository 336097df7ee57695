"""The paper's claims on real data: what is run (design), what is kept (records), what it shows (claims, page)."""
