"""The arrays of an .npz as their headers describe them, each read forwards; none is ever unpickled.

Nothing here takes more memory than the archive's directory and the headers, which are bounded.
"""

import io
import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from venn_admit.files.inputs import check_is_file, reading

# The errors that zipfile, its decompressors and numpy's header parser raise on damaged bytes.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    MemoryError,  # from the parser, at a header that consists of brackets only
    OverflowError,
    RuntimeError,  # including NotImplementedError: encrypted, or of an unknown compression
    SyntaxError,
    SystemError,  # from numpy, at code points that do not exist
    TypeError,
    tokenize.TokenError,
    ValueError,
)
_DIRECTORY_BYTES = 1 << 20
_ARRAY_LIMIT = 1000
_HEADER_BYTES = 10_000  # numpy's own limit, which it checks only after reading
# numpy writes no other. The decompressors of bzip2 and LZMA decompress all that they are given at once.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _DirectoryFile(io.FileIO):
    """A file that refuses to read more than a directory's worth at once, until it is `open_to_all`."""

    open_to_all = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.open_to_all and size is not None and size > _DIRECTORY_BYTES:
            raise ValueError(f"its directory has {size:,} bytes, expected at most {_DIRECTORY_BYTES:,}")
        return super().read(-1 if size is None else size) or b""


@dataclass(slots=True)
class StoredArray:
    """One array of the archive, read forwards from the stream that its header was read from."""

    path: Path
    name: str
    stream: IO[bytes]
    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]
    row: int = 0
    whole: npt.NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """The size of the whole array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def take(self, row_count: int) -> npt.NDArray[Any]:
        """Return the next rows, (row_count, ...), in the array's own type."""
        if not self.column_major:
            return self._read((row_count, *self.shape[1:]))
        if self.whole is None:
            self.whole = self._read(self.shape[::-1]).transpose()
        start, self.row = self.row, self.row + row_count
        return self.whole[start : self.row]

    def take_whole(self) -> npt.NDArray[Any]:
        """Return the whole array, of which nothing was read yet, in its own type."""
        return self._read(self.shape)

    def _read(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        size = math.prod(shape) * self.dtype.itemsize
        with reading(self.path, "npz file", *DAMAGE):
            data = self.stream.read(size)
            if len(data) != size:
                raise EOFError(f"array {self.name} ends early")
            return np.ndarray(shape, self.dtype, buffer=data)


@contextmanager
def open_arrays(path: Path) -> Iterator[dict[str, StoredArray]]:
    """Open the archive and read the header of each array; the arrays can be read as long as the context lasts."""
    check_is_file(path)
    with ExitStack() as stack:
        with reading(path, "npz file", *DAMAGE):
            file = stack.enter_context(_DirectoryFile(path))
            archive = stack.enter_context(zipfile.ZipFile(file))
            file.open_to_all = True
            members = archive.infolist()
            if len(members) > _ARRAY_LIMIT:
                raise ValueError(f"it has {len(members):,} arrays, expected at most {_ARRAY_LIMIT:,}")
            arrays = [_open_array(path, member, stack.enter_context(archive.open(member))) for member in members]
            by_name = {array.name: array for array in arrays}
            if len(by_name) < len(arrays):
                raise ValueError("two arrays have the same name")
        yield by_name


def _open_array(path: Path, member: zipfile.ZipInfo, stream: IO[bytes]) -> StoredArray:
    if not member.filename.endswith(".npy"):
        raise ValueError(f"{member.filename!r} is not an array")
    if member.compress_type not in _COMPRESSIONS:
        raise ValueError(f"{member.filename} is compressed by a method that numpy does not write")
    shape, column_major, dtype = _read_header(member.filename, stream)
    array = StoredArray(path, member.filename.removesuffix(".npy"), stream, shape, column_major, dtype)
    if not dtype.hasobject and member.file_size - stream.tell() != array.size:
        raise ValueError(f"{member.filename} does not have the {array.size:,} bytes that its header states")
    return array


def _read_header(filename: str, stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{filename} is of version {version}")
    length = stream.read(2 if version == (1, 0) else 4)
    header_bytes = int.from_bytes(length, "little")
    if header_bytes > _HEADER_BYTES:
        raise ValueError(f"{filename} has a header of {header_bytes:,} bytes, expected at most {_HEADER_BYTES:,}")
    header = io.BytesIO(length + stream.read(header_bytes))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(header)
    return np.lib.format.read_array_header_2_0(header)
