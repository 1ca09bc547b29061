"""Monitoring of the promise as labels arrive."""
