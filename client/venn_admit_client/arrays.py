"""Arrays, tensors and lists of them as NumPy has them, alike in both packages."""

from collections.abc import Mapping, Set
from math import isnan
from typing import Any

import numpy as np

from .naming import type_text

Array = np.ndarray[Any, np.dtype[Any]]


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of PyTorch, which need not be installed to tell."""
    return hasattr(values, "detach")


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or what pandas has in its place: NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def values_of(values: Any, name: str, refused: type[Exception]) -> Any:
    """Return a column of values, one of Arrow as a list.

    Args:
        name: What messages call it.
        refused: What is raised if it is a text, a mapping, a single value or without an order.
    """
    is_single = not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0
    if is_single or isinstance(values, (str, bytes, Mapping, Set)):
        raise refused(f"{name}: expected a list or an array of values, got {type_text(values)}")
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def array_of(values: Any, name: str, refused: type[Exception]) -> Array:
    """Return an array; of a tensor, or of a list of tensors, their values on the CPU, bfloat16 as float32.

    A column of a table whose cells are rows is taken as a list of them.

    Args:
        name: What messages call it.
        refused: What is raised if rows have different lengths, some values are masked, or they cannot be an array.
    """
    if isinstance(values, (list, tuple)):
        values = [array_of(one, name, refused) if is_tensor(one) or np.ma.is_masked(one) else one for one in values]
    if np.ma.is_masked(values):
        raise refused(f"{name}: expected an array without masked values; leave their rows out")
    try:
        if is_tensor(values):
            values = values.detach().cpu()
            values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
        array = np.asarray(values)
        if array.dtype == object and array.ndim == 1 and not isinstance(values, (list, tuple)):
            return array_of(array.tolist(), name, refused)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise refused(f"{name}: expected numbers, as many in each row: {error}") from error
    if array.dtype == object and not array.ndim:
        raise refused(f"{name}: expected numbers, in an array for example, got {type_text(values)}")
    return array
