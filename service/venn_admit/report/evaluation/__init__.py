"""What an evaluation shows: its data, verdicts and words, tables in the terminal, and JSON."""
