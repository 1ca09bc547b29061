"""Monitoring that may be looked at after every label (docs/explanation/monitoring.md)."""
