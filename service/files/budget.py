"""The memory that a file may take while it is read, and what its rows take of it."""

from pathlib import Path

from venn_admit.service.errors import InvalidInputError

# A Python object with its place in a list or dictionary. Each value is held twice: as it was read, and as checked.
OBJECT_BYTES = 100

# A batch is copied on its way to the database: as JSON, and packed for COPY.
_BATCH_SHARE = 8


def batch_bytes(memory_budget: int) -> int:
    """Return the bytes that the rows held at once may take, out of a budget for everything."""
    return memory_budget // _BATCH_SHARE


def too_large(path: Path, where: str, limit: int, got: int, advice: str) -> InvalidInputError:
    """Return the error for a place in a file that would take too much memory, ready to be raised."""
    return InvalidInputError(
        f"{path}: {where}: expected at most {limit:,} bytes of memory, got {got:,}; "
        f"{advice}, or raise VENN_ADMIT_MEMORY_BUDGET_MB"
    )
