"""What all tables share: their schema, the names of their constraints, and the kinds of their columns."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Identity, MetaData, func
from sqlalchemy.types import TypeEngine

from venn_admit.store.database import SCHEMA

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


TIME = DateTime(timezone=True)
_Kind = TypeEngine[Any] | type[TypeEngine[Any]] | ForeignKey


def key(comment: str, kind: type[TypeEngine[int]] = BigInteger) -> Column[int]:
    """Return the column `id`, whose values the server gives."""
    return Column("id", kind, Identity(always=True), primary_key=True, comment=comment)


def required(name: str, kind: _Kind, comment: str, **options: Any) -> Column[Any]:
    """Return a column that is never null."""
    return Column(name, kind, nullable=False, comment=comment, **options)


def optional(name: str, kind: _Kind, comment: str, **options: Any) -> Column[Any]:
    """Return a column that may be null."""
    return Column(name, kind, comment=comment, **options)


def created_at(what: str) -> Column[datetime]:
    """Return the column of the time of creation; what: what happened then."""
    return required("created_at", TIME, f"When {what}.", server_default=func.now())
