"""Verbs on what is stored and what runs: the catalogue, jobs, workers, the database, the demo."""
