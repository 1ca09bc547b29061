"""Inputs: what messages call them, the errors for them, and the memory that reading them may take."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from venn_admit.errors import Code, InvalidInputError

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


OF_NETWORK = (
    "a classifier keeps its classes, and each of its generations the length of its vectors: name the generation that "
    "these are of, or create one for another network"
)
"""What to do about vectors or logits of another length."""


def input_error(
    place: Place, where: str, expected: str, got: object, advice: str = "", code: Code | None = None
) -> InvalidInputError:
    """Return the error for one part of an input, ready to be raised."""
    return InvalidInputError(f"{place}: {where}: expected {expected}, got {got}{advice and '; '}{advice}", code=code)


@contextmanager
def reading(place: Place, kind: str, *damage: type[Exception]) -> Iterator[None]:
    """Turn the errors that a library raises on a damaged or unreadable file of this kind into InvalidInputError."""
    unreadable: tuple[type[Exception], ...] = (OSError, *damage)
    try:
        yield
    except unreadable as error:
        advice = "it may be truncated or damaged, write or copy it again"
        if isinstance(error, UnicodeDecodeError):
            advice = "it may be in another encoding, save it as UTF-8; or it is damaged"
        elif isinstance(error, UnicodeEncodeError):
            advice = "its name is not UTF-8, rename it"
        raise InvalidInputError(
            f"{place}: expected a readable {kind}, got {type(error).__name__}: {error}; {advice}"
        ) from error


def check_is_file(path: Path) -> None:
    """Raise InvalidInputError unless the path is a regular file."""
    with reading(path, "exemplar file"):
        if path.is_file():
            return
        found = "a directory" if path.is_dir() else "something else" if path.exists() else "no such file"
    raise InvalidInputError(f"{path}: expected a file, got {found}; check the path")
