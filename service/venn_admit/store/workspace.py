"""What one process works with, as one record: every use case is given it, and takes what it needs of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

if TYPE_CHECKING:
    from venn_admit.store.calibrations.kept import KeptSnapshots
    from venn_admit.store.search.array_cache import ArrayCache


@dataclass(frozen=True)
class Workspace:
    """The database, the cache of its arrays, and the limits of what is computed.

    Attributes:
        engine: The database.
        cache_folder: Where copies of the training exemplars are kept.
        memory_budget: Bytes that the temporary arrays of one computation, or reading a file, may take.
        chunk_rows: Rows of a job that one worker claims at a time.
        keep_calibrations: How many snapshots of a setting are kept, beside those that decisions or jobs refer to;
            None: all.
        device: Where the products of a neighbour search are computed, `cpu` or `cuda`.
    """

    engine: Engine
    cache_folder: Path
    memory_budget: int
    chunk_rows: int
    keep_calibrations: int | None
    device: str

    @cached_property
    def cache(self) -> "ArrayCache":
        """Maps vectors, and keeps copies of the training exemplars."""
        from venn_admit.store.search.array_cache import ArrayCache  # which brings NumPy

        return ArrayCache(self.cache_folder, memory_budget=self.memory_budget)

    @cached_property
    def kept(self) -> "KeptSnapshots":
        """Keeps the newest snapshots in memory."""
        from venn_admit.store.calibrations.kept import BUDGET_PART, KeptSnapshots

        return KeptSnapshots(self.memory_budget // BUDGET_PART)
