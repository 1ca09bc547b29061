"""From stored exemplars to a current calibration."""
