"""Exemplars and labels in and out."""
