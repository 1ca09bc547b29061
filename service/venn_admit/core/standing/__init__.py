"""Certificates that stand while labels arrive: thresholds fixed beforehand, each with a game that goes on."""
