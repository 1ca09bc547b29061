"""The foundations of every method of calibration: settings, bands of (q, d), and the rows of a snapshot."""
