"""Arrays, tensors and lists of them as NumPy has them, alike in both packages."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of PyTorch, which need not be installed to tell."""
    return hasattr(values, "detach")


def check_is_column(values: Any, name: str, refused: type[Exception]) -> None:
    """Raise `refused` if values are a text, a mapping or a single value; name: what messages call them."""
    is_single = not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0
    if is_single or isinstance(values, (str, bytes, Mapping)):
        raise refused(f"{name}: expected a list or an array of values, got a {type(values).__name__}")


def array_of(values: Any, name: str, refused: type[Exception]) -> Array:
    """Return an array; of a tensor, or of a list of tensors, their values on the CPU, bfloat16 as float32.

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
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise refused(f"{name}: expected numbers, as many in each row: {error}") from error
