"""The little Markdown that generated pages are made of."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; each cell is Markdown of one line, in which bars are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def plain(text: str) -> str:
    """Return text as Markdown that shows it as it is; between backticks it stays code."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*").replace("_", r"\_") for part in parts[::2]]
    return "`".join(parts)


def one_line(text: str) -> str:
    """Return text with its line breaks and runs of spaces as single spaces."""
    return " ".join(text.split())


def join(*blocks: str) -> str:
    """Return a page of blocks, those that are empty left out."""
    return "\n\n".join(block for block in blocks if block) + "\n"
