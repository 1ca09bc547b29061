"""Evaluations, reports, what-if, and what is watched of the promise and of the service."""
