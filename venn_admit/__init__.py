"""venn-admit: ADMIT and Venn-ADMIT selective classification over Postgres/pgvector.

The program itself is in `venn_admit.service` and `venn_admit.workers`, which are no interface.
"""

__version__ = "0.2.0"
