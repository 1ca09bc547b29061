"""Whether the database holds all that its own rows say it should."""
