"""Evaluations and reports."""
