"""Verbs that make exemplars from texts and token states."""
