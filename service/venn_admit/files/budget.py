"""The memory that a file may take while it is read, and what its rows take of it."""

from pathlib import Path

from venn_admit.errors import InvalidInputError

# What messages call an input: the path of a file, or words for data that came otherwise.
Place = Path | str

# A Python object with its place in a list or dictionary. Each value is held twice: as it was read, and as checked.
OBJECT_BYTES = 100

# A batch is copied on its way to the database: as JSON, and packed for COPY.
_BATCH_SHARE = 8


def batch_bytes(memory_budget: int) -> int:
    """Return the bytes that the rows held at once may take, out of a budget for everything."""
    return memory_budget // _BATCH_SHARE


def too_large(place: Place, where: str, limit: int, got: int, advice: str) -> InvalidInputError:
    """Return the error for a part of an input that would take too much memory, ready to be raised."""
    return InvalidInputError(
        f"{place}: {where}: expected at most {limit:,} bytes of memory, got {got:,}; "
        f"{advice}, or raise VENN_ADMIT_MEMORY_BUDGET_MB"
    )
