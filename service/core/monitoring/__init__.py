"""How a calibration stands: drift, discrepancies, partitions, and the labels it lacks."""
