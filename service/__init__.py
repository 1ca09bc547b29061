"""venn-admit: ADMIT and Venn-ADMIT selective classification over Postgres/pgvector."""

__version__ = "0.2.0"
