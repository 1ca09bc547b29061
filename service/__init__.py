"""The calibration service: its mathematics, store, use cases and shells."""
