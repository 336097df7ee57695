"""The paper's claims on real data: what is run (digits, photos), what is kept (records), what it says (page)."""
