"""The tables, as SQLAlchemy metadata: the model that migrations are checked against.

Statements live in `sql/*.sql`; nothing here is used to assemble queries. Tables are private to this package: reports
and other programs read the views in schema `report`.
"""

from venn_admit.store.database.tables import (
    access,
    approximations,
    audits,
    calibrations,
    cascades,
    decisions,
    exemplars,
    forgotten,
    in_use,
    monitors,
    reviews,
    standing,
    venn_abers,
    work,
)
from venn_admit.store.database.tables.base import metadata

__all__ = [
    "access",
    "approximations",
    "audits",
    "calibrations",
    "cascades",
    "decisions",
    "exemplars",
    "forgotten",
    "in_use",
    "metadata",
    "monitors",
    "reviews",
    "standing",
    "venn_abers",
    "work",
]
