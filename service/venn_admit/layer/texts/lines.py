"""Lines of a file of text in UTF-8, one at a time; a line, a file or an encoding that cannot be is refused."""

from collections.abc import Iterator
from pathlib import Path

from venn_admit.errors import InvalidInputError
from venn_admit.files.records import check_is_file, input_error, reading

LINE_CHARACTERS = 16 << 20
"""The longest line, and so the longest text, that is read."""

# Each begins as no text in UTF-8 can, UTF-32 first, whose mark begins as that of UTF-16 does.
_OTHER_ENCODINGS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, each with its end; a byte order mark is left out.

    Raises InvalidInputError unless the file is UTF-8.
    """
    check_is_file(path)
    with reading(path, "text file"), path.open("rb") as file:
        start = file.read(4)
    for mark, encoding in _OTHER_ENCODINGS.items():
        if start.startswith(mark):
            raise _other_encoding(path, 1, encoding)
    number = 0
    with reading(path, "text file"), path.open(encoding="utf-8-sig", newline="") as file:
        while True:
            try:
                line = file.readline(LINE_CHARACTERS)
            except UnicodeDecodeError:
                raise _other_encoding(path, number + 1, "bytes that are not") from None
            if not line:
                return
            number += 1
            if len(line) == LINE_CHARACTERS:
                expected = f"fewer than {LINE_CHARACTERS:,} characters"
                raise input_error(path, f"line {number}", expected, "more", "cut the text")
            yield line


def _other_encoding(path: Path, line: int, got: str) -> InvalidInputError:
    advice = "save the file as UTF-8, for example by `iconv --from-code WINDOWS-1252 --to-code UTF-8`"
    return input_error(path, f"line {line} or soon after", "text in UTF-8", got, advice)
