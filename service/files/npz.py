"""Exemplars from .npz: every array streamed from its member of the archive, none ever unpickled.

The arrays: `r` (n, D) float16 or float32, the vectors; `f` (n, C) float16 or float32, the logits; optional
`y` (n,) integer, the labels, -1 unknown; optional `id` (n,) str; optional `doc` (n,) str or integer. Any
other array of length n is kept as an attribute of that name.
"""

import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from service.files.records import Attributes, ExemplarBatch, Layout, check_is_file, fault, make_batch, reading

# What zipfile, its decompressors and numpy's header parser raise on bytes that are not as they were written.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    OverflowError,
    RuntimeError,  # NotImplementedError included: encrypted, or of an unknown compression
    SyntaxError,
    SystemError,  # numpy's, at code points that do not exist
    tokenize.TokenError,
    ValueError,
)
# The kinds of dtype each array may have, and how a message names them.
_TYPES = {
    "r": ("f", "float16 or float32"),
    "f": ("f", "float16 or float32"),
    "y": ("iu", "integers"),
    "id": ("U", "texts (dtype U)"),
    "doc": ("Uiu", "texts (dtype U) or integers"),
}
_ATTRIBUTE_TYPES = ("biufU", "booleans, numbers or texts (dtype U)")


@dataclass(slots=True)
class _Array:
    """One array of the archive, read forwards from the stream that its header was read from."""

    path: Path
    name: str
    stream: IO[bytes]
    shape: tuple[int, ...]
    column_major: bool
    dtype: np.dtype[Any]
    row: int = 0
    whole: npt.NDArray[Any] | None = None

    def take(self, row_count: int) -> npt.NDArray[Any]:
        """Return the next rows, (row_count, ...), in the array's own type."""
        if not self.column_major:
            return self._read((row_count, *self.shape[1:]))
        if self.whole is None:
            self.whole = self._read(self.shape[::-1]).transpose()
        start, self.row = self.row, self.row + row_count
        return self.whole[start : self.row]

    def _read(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        size = math.prod(shape) * self.dtype.itemsize
        with reading(self.path, "npz", *_DAMAGE):
            data = self.stream.read(size)
            if len(data) != size:
                raise EOFError(f"array {self.name} ends early")
            return np.ndarray(shape, self.dtype, buffer=data)


def read_batches(path: Path, layout: Layout, batch_rows: int) -> Iterator[ExemplarBatch]:
    """Read an .npz in batches; see `service.files.read_exemplars`.

    Memory is that of a batch, but for arrays stored column-major, which are read whole.
    """
    layout = replace(layout, vector="vector r", logits="logits f", label="label y", external_id="id", document_id="doc")
    with _open_arrays(path) as arrays:
        _check_arrays(layout, arrays)
        row_count = arrays["r"].shape[0]
        for first_row in range(0, row_count, batch_rows):
            size = min(batch_rows, row_count - first_row)
            yield _to_batch(layout, first_row, {name: array.take(size) for name, array in arrays.items()})


def count_rows(path: Path) -> int:
    """Return the number of rows of an .npz, from the header of `r`."""
    with _open_arrays(path) as arrays:
        _check_present(path, arrays)
        return arrays["r"].shape[0] if arrays["r"].shape else 0


@contextmanager
def _open_arrays(path: Path) -> Iterator[dict[str, _Array]]:
    """Open the archive and read the header of each array; the arrays can be read while the context lasts."""
    check_is_file(path)
    with ExitStack() as stack:
        with reading(path, "npz", *_DAMAGE):
            archive = stack.enter_context(zipfile.ZipFile(path))
            members = [(member, stack.enter_context(archive.open(member))) for member in archive.infolist()]
            arrays = [_open_array(path, member, stream) for member, stream in members]
            by_name = {array.name: array for array in arrays}
            if len(by_name) < len(arrays):
                raise ValueError("two arrays have the same name")
        yield by_name


def _open_array(path: Path, member: zipfile.ZipInfo, stream: IO[bytes]) -> _Array:
    if not member.filename.endswith(".npy"):
        raise ValueError(f"{member.filename!r} is not an array")
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        header = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"{member.filename} is of version {version}")
    array = _Array(path, member.filename.removesuffix(".npy"), stream, *header)
    size = math.prod(array.shape) * array.dtype.itemsize
    if not array.dtype.hasobject and member.file_size - stream.tell() != size:
        raise ValueError(f"{member.filename} has not the {size:,} bytes that its header calls for")
    return array


def _check_present(path: Path, arrays: dict[str, _Array]) -> None:
    for name in ("r", "f"):
        if name not in arrays:
            raise fault(path, "arrays", f"one named {name!r}", ", ".join(map(ascii, arrays)) or "none")


def _check_arrays(layout: Layout, arrays: dict[str, _Array]) -> None:
    """Raise InvalidInputError where a header tells that an array is not what the module describes."""
    _check_present(layout.path, arrays)
    row_count = arrays["r"].shape[0] if arrays["r"].shape else 0
    for name, array in {"r": arrays["r"], **arrays}.items():  # `r` first: the others are held against it
        where = f"array {name!a}"
        _check_dtype(layout.path, where, name, array.dtype)
        _check_width(layout, where, name, array.shape)
        if array.shape[:1] != (row_count,):
            rows = f"{array.shape[0]} rows" if array.shape else "a single value"
            raise fault(layout.path, where, f"{row_count} rows, as many as 'r' has", rows)
    if row_count < 1:
        raise fault(layout.path, "array 'r'", "at least one row", row_count)


def _check_dtype(path: Path, where: str, name: str, dtype: np.dtype[Any]) -> None:
    kinds, expected = _TYPES.get(name, _ATTRIBUTE_TYPES)
    if dtype.hasobject:
        objects = "Python objects, which are never unpickled"
        raise fault(path, where, expected, objects, "save numbers or fixed-width texts")
    too_wide = name in ("r", "f") and dtype.itemsize > np.dtype(np.float32).itemsize
    if dtype.kind not in kinds or too_wide:
        raise fault(path, where, expected, dtype, "cast it and save it again")


def _check_width(layout: Layout, where: str, name: str, shape: tuple[int, ...]) -> None:
    widths: dict[str, tuple[int, ...]] = {
        "r": (layout.dimension,),
        "f": (layout.class_count,),
        "y": (),
        "id": (),
        "doc": (),
    }
    if name in widths and shape[1:] != widths[name]:
        expected = f"{widths[name][0]} values a row" if widths[name] else "one value a row"
        found = " x ".join(map(str, shape[1:])) or "one"
        raise fault(layout.path, where, expected, f"{found} (shape {shape})")


def _to_batch(layout: Layout, first_row: int, columns: dict[str, npt.NDArray[Any]]) -> ExemplarBatch:
    with reading(layout.path, "npz", *_DAMAGE):
        lists = {name: values.tolist() for name, values in columns.items() if name not in ("r", "f", "y")}
    external_ids, documents = lists.pop("id", None), lists.pop("doc", None)
    return make_batch(
        layout,
        first_row,
        vectors=columns["r"].astype(np.float32, order="C"),
        logits=columns["f"].astype(np.float32, order="C"),
        labels=columns.get("y"),
        external_ids=external_ids,
        document_ids=None if documents is None else list(map(str, documents)),
        attributes=_transpose(lists) if lists else None,
    )


def _transpose(lists: dict[str, list[Any]]) -> Iterator[Attributes]:
    return (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
