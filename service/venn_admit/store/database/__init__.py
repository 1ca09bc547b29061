"""Access to the database: engine, named statements, binary COPY, tables and their migration."""

SCHEMA = "venn_admit"
"""Where the tables are."""
