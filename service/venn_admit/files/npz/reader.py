"""Exemplars from .npz: every array is streamed from its member of the archive, and none is ever unpickled.

The arrays are `r` (n, D) float16, float32 or float64, the vectors, unless the classifier has logits only; `f` (n, C) of
the same types, the logits; optionally `y` (n,), the labels, which are class numbers, as integers or whole floats, or
class names, with -1, NaN or an empty text for an unknown label; and optionally `id` (n,) and `doc` (n,), texts or
integers. Any other array of length n is kept as an attribute of that name; dates become ISO text. An array `extractor`
that holds one text is the version of the extractor that the vectors come from.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.files.inputs import OBJECT_BYTES, OF_NETWORK, Place, batch_bytes, input_error, reading, too_large
from venn_admit.files.npz.archive import DAMAGE, StoredArray, open_arrays
from venn_admit.files.records import (
    VERSION_RULE,
    Attributes,
    ExemplarBatch,
    Layout,
    check_names,
    make_batch,
    stating,
    unwanted_vectors,
)

EXTRACTOR = "extractor"
_MOST_EXTRACTOR_BYTES = 1 << 12
# The kinds of dtype that each array may have, and how a message names them.
_TYPES = {
    "r": ("f", "float16, float32 or float64"),
    "f": ("f", "float16, float32 or float64"),
    "y": ("iufU", "class numbers or class names (dtype U)"),
    "id": ("Uiu", "texts (dtype U) or integers"),
    "doc": ("Uiu", "texts (dtype U) or integers"),
}
_ATTRIBUTE_TYPES = ("biufUM", "booleans, numbers, dates or texts (dtype U)")
_LAST_CODE_POINT = 0x10FFFF


def read_batches(path: Path, layout: Layout, batch_rows: int) -> Iterator[ExemplarBatch]:
    """Read an .npz in batches; see `venn_admit.files.read_exemplars`.

    It takes the memory of a batch, except for arrays stored column-major, which are read whole.
    """
    layout = replace(layout, vector="vector r", logits="logits f", label="label y", external_id="id", document_id="doc")
    with open_arrays(path) as arrays:
        layout = _with_extractor(layout, arrays)
        _check_arrays(layout, arrays)
        row_count = arrays["f"].shape[0]
        batch_rows = min(batch_rows, _affordable_rows(layout, arrays))
        for first_row in range(0, row_count, batch_rows):
            size = min(batch_rows, row_count - first_row)
            yield _to_batch(layout, first_row, {name: array.take(size) for name, array in arrays.items()})


def count_rows(path: Path) -> int:
    """Return the number of rows of an .npz, from the header of `f`."""
    with open_arrays(path) as arrays:
        _check_present(path, arrays, "f")
        return arrays["f"].shape[0] if arrays["f"].shape else 0


def _with_extractor(layout: Layout, arrays: dict[str, StoredArray]) -> Layout:
    """Read and remove the version of the extractor, and return a layout with it, if it is among the arrays."""
    found = arrays.get(EXTRACTOR)
    # With another shape or type, it is an attribute like any other.
    if found is None or found.dtype.kind != "U" or found.shape not in ((), (1,)):
        return layout
    if found.size > _MOST_EXTRACTOR_BYTES:
        raise input_error(layout.place, f"array {EXTRACTOR!r}", VERSION_RULE, f"{found.size // 4:,} characters")
    values = arrays.pop(EXTRACTOR).take_whole().reshape(1)
    _check_code_points(layout, 0, EXTRACTOR, values)
    return stating(layout, f"array {EXTRACTOR!r}", str(values[0]))


def _check_present(place: Place, arrays: dict[str, StoredArray], *names: str) -> None:
    for name in names:
        if name not in arrays:
            raise input_error(place, "arrays", f"one named {name!r}", ", ".join(map(repr, arrays)) or "none")


def _check_arrays(layout: Layout, arrays: dict[str, StoredArray]) -> None:
    """Raise InvalidInputError if a header shows that an array is not as the module describes it."""
    for name in ("r", "vector"):
        if layout.dimension is None and name in arrays:
            raise unwanted_vectors(layout.place, f"array {name!r}", f"one of shape {arrays[name].shape}")
    required = ("f",) if layout.dimension is None else ("r", "f")
    _check_present(layout.place, arrays, *required)
    check_names(layout.place, "array", arrays, _TYPES)
    first = required[0]
    row_count = arrays[first].shape[0] if arrays[first].shape else 0
    for name, array in {first: arrays[first], **arrays}.items():  # first, because the others are compared with it
        where = f"array {name!r}"
        _check_dtype(layout.place, where, name, array.dtype)
        _check_width(layout, where, name, array.shape)
        if array.shape[:1] != (row_count,):
            rows = f"{array.shape[0]} rows" if array.shape else "a single value"
            raise input_error(layout.place, where, f"{row_count} rows, as many as {first!r} has", rows)
    if row_count < 1:
        raise input_error(layout.place, f"array {first!r}", "at least one row", row_count)


def _check_dtype(place: Place, where: str, name: str, dtype: np.dtype[Any]) -> None:
    kinds, expected = _TYPES.get(name, _ATTRIBUTE_TYPES)
    if dtype.hasobject:
        objects = "Python objects, which are never unpickled"
        raise input_error(place, where, expected, objects, "save numbers or fixed-width texts")
    too_wide = dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize
    if dtype.kind not in kinds or too_wide:
        raise input_error(place, where, expected, dtype, "cast it and save it again")


def _check_width(layout: Layout, where: str, name: str, shape: tuple[int, ...]) -> None:
    widths: dict[str, tuple[int, ...]] = {
        "r": () if layout.dimension is None else (layout.dimension,),
        "f": (layout.class_count,),
        "y": (),
        "id": (),
        "doc": (),
    }
    if name in widths and shape[1:] != widths[name]:
        expected = f"{widths[name][0]} values per row" if widths[name] else "one value per row"
        found = " x ".join(map(str, shape[1:])) or "one"
        advice = OF_NETWORK if widths[name] else ""
        raise input_error(layout.place, where, expected, f"{found} (shape {shape})", advice)


def _affordable_rows(layout: Layout, arrays: dict[str, StoredArray]) -> int:
    """The number of rows that fit into memory at once, by the headers; InvalidInputError if not even one does."""
    limit = batch_bytes(layout.memory_budget)
    costs = {name: _row_cost(name, array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.column_major and array.size > limit:
            advice = "it is stored column by column; save its np.ascontiguousarray"
            raise too_large(layout.place, f"array {name!r}", limit, array.size, advice)
    if (row_cost := sum(costs.values())) > limit:
        widest = max(costs, key=costs.__getitem__)
        raise too_large(layout.place, f"array {widest!r}, a row", limit, row_cost, "save shorter rows")
    return limit // row_cost


def _row_cost(name: str, array: StoredArray) -> int:
    """Bytes that a row of an array takes while it is read and checked."""
    # A list is made even for a dimension that has no values because a later one has length 0.
    value_count = math.prod(max(length, 1) for length in array.shape[1:])
    if name in ("r", "f"):
        return value_count * (array.dtype.itemsize + 2 * np.dtype(np.float32).itemsize)
    return value_count * (2 * array.dtype.itemsize + OBJECT_BYTES)


def _to_batch(layout: Layout, first_row: int, columns: dict[str, npt.NDArray[Any]]) -> ExemplarBatch:
    lists = {
        name: _to_list(layout, first_row, name, values) for name, values in columns.items() if name not in ("r", "f")
    }
    labels, external_ids, documents = (lists.pop(name, None) for name in ("y", "id", "doc"))
    numbers = columns.get("y")
    return make_batch(
        layout,
        first_row,
        vectors=columns.get("r"),
        logits=columns["f"],
        labels=labels if numbers is None or numbers.dtype.kind == "U" else numbers,
        external_ids=None if external_ids is None else list(map(str, external_ids)),
        document_ids=None if documents is None else list(map(str, documents)),
        attributes=_transpose(lists) if lists else None,
    )


def _to_list(layout: Layout, first_row: int, name: str, values: npt.NDArray[Any]) -> list[Any]:
    if values.dtype.kind == "U":
        _check_code_points(layout, first_row, name, values)
    if values.dtype.kind == "M":
        texts = np.datetime_as_string(values).astype(object)
        texts[np.isnat(values)] = None
        values = texts
    with reading(layout.place, "npz file", *DAMAGE):
        plain: list[Any] = values.tolist()
    return plain


def _check_code_points(layout: Layout, first_row: int, name: str, values: npt.NDArray[np.str_]) -> None:
    """Raise InvalidInputError at a text of code points that do not exist, which numpy would accept."""
    if not values.size or not values.dtype.itemsize:
        return
    units = np.ascontiguousarray(values).view(values.dtype.str[0] + "u4")
    beyond = units.reshape(len(values), -1).max(axis=1) > _LAST_CODE_POINT
    if beyond.any():
        where = f"row {first_row + int(beyond.argmax())}, {name}"
        raise input_error(layout.place, where, "text of Unicode code points", "one beyond U+10FFFF", "save it again")


def _transpose(lists: dict[str, list[Any]]) -> Iterator[Attributes]:
    return (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
