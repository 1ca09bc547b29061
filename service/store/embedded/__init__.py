"""The Postgres that comes with the program: its server, and who uses it."""
