"""Certificates that stand while labels arrive: thresholds fixed beforehand, each with a game that goes on.

These arguments mean the same in all of its modules.

Args:
    chain: The thresholds.
    state: What the labels so far have shown.
"""
