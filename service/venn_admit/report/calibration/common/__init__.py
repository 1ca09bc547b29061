"""What a report shows of a calibration by any method."""
