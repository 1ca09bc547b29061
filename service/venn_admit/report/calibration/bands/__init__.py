"""What a report shows of a calibration by Venn-ADMIT: partitions, bands, and the labels that they lack."""
