"""What every method of calibration rests on: settings, bands of (q, d), and the rows of a snapshot."""
