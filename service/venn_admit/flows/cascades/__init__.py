"""Cascades: classifiers that are asked one after the other, certified together."""
