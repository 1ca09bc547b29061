"""Removing what is stored: exemplars that are forgotten, and classifiers that are deleted."""
