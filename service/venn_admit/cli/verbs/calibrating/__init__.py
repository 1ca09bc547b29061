"""Verbs on the way to a calibration: data, labels, the fit, settings, the index."""
