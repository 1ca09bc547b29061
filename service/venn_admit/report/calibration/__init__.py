"""How a calibration stands: its data, advice and words, tables in the terminal, and JSON."""
