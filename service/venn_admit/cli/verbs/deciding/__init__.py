"""Verbs that decide, and that say how well decisions are doing."""
