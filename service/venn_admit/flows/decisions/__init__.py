"""Decisions: many in a job, one at once, and one again."""
