"""What a report shows of a calibration by Venn-Abers: its score, its cells, and the labels that they lack."""
