"""Cascades: classifiers that are asked one after the other, certified together.

In all of its modules, `name` is the name of the cascade.
"""
