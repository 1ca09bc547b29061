"""Cascades: their stages, and their certificates."""
