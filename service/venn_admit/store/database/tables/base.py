"""What all tables share: their schema, the names of their constraints, and the column of their time."""

from datetime import datetime

from sqlalchemy import Column, DateTime, MetaData, func

SCHEMA = "venn_admit"
# In the info of tables without a write-ahead log, which a standby does not have and cannot read.
IS_UNLOGGED = "is_unlogged"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)


def created_at(what: str) -> Column[datetime]:
    """Return the column of the time of creation; what: what happened then."""
    return Column(
        "created_at", DateTime(timezone=True), nullable=False, server_default=func.now(), comment=f"When {what}."
    )
