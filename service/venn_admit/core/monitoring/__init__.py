"""The state of a calibration: drift, discrepancies, partitions, and the labels it needs."""
