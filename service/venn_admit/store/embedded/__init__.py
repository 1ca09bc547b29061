"""The Postgres that comes with the program: its server, and the processes that use it."""
