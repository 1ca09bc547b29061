"""Certificates that stand while labels arrive: thresholds fixed beforehand, each with a game that goes on.

These arguments mean the same in all of its modules.

Args:
    chain: The thresholds.
    place: That of a class in the chain: its number or, of a true class, that behind all predicted ones.
    state: What the labels so far have shown.
"""
