"""Ids of exemplars as arrays."""

from typing import Any

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute


def execute_ids(connection: Connection, name: str, /, **parameters: Any) -> IntArray:
    """Return the ids that the statement `file.name` selects, (n,) int64, in its order."""
    return np.array(execute(connection, name, **parameters).scalars().all(), dtype=np.int64)


def unpacked_ids(packed: bytes | None) -> IntArray:
    """Return the ids, (n,), that a statement packed into one value with int8send; none for None."""
    return np.frombuffer(packed or b"", dtype=">i8").astype(np.int64)
