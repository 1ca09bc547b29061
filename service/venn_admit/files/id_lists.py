"""Lists of ids in a text file, one a line."""

from pathlib import Path

from venn_admit.errors import InvalidInputError

MOST_BYTES = 64 << 20


def read_ids(path: Path) -> list[str]:
    """Return the ids in a file, in its order; empty lines are left out.

    Raises:
        InvalidInputError: It cannot be read, is no text in UTF-8, is too large, or holds no id.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInputError(f"{path}: expected at most {MOST_BYTES:,} bytes of ids; divide it")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"{path} cannot be read as text: {getattr(error, 'strerror', None) or 'it is not UTF-8'}; name a file with "
            "an id a line"
        ) from error
    ids = [one for line in text.split("\n") if (one := line.removesuffix("\r"))]
    if not ids:
        raise InvalidInputError(f"{path}: expected an id a line, got none")
    return ids
