"""Exemplars from record batches of Arrow: types, checks, and streams in files."""
