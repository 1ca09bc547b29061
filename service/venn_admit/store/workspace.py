"""What one process works with, as one record: every use case is given it, and takes what it needs of it."""

from dataclasses import dataclass

from sqlalchemy import Engine

from venn_admit.store.search.array_cache import ArrayCache


@dataclass(frozen=True)
class Workspace:
    """The database, the cache of its arrays, and the limits of what is computed.

    Attributes:
        engine: The database.
        cache: Maps vectors, and keeps copies of the training exemplars.
        chunk_rows: Rows of a job that one worker claims at a time.
        keep_calibrations: How many snapshots of a setting are kept, beside those that decisions or jobs refer to;
            None: all.
        device: Where the products of a neighbour search are computed, `cpu` or `cuda`.
    """

    engine: Engine
    cache: ArrayCache
    chunk_rows: int
    keep_calibrations: int | None
    device: str

    @property
    def memory_budget(self) -> int:
        """Bytes that the temporary arrays of one computation, or reading a file, may take."""
        return self.cache.memory_budget
