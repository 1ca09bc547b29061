"""Decisions, and what evaluations, reports and lists read of them."""
