"""Checks of array arguments that several rooms share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError


def check_lengths(**arrays: npt.NDArray[Any]) -> None:
    """Check that all arrays have the same first dimension."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InvalidInputError(f"expected arrays of one length, got {listed}; pass arrays of the same points")


def check_rows(expected: int, columns: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Check that every column has the expected number of rows."""
    for name, column in columns.items():
        if column.shape[0] != expected:
            raise InvalidInputError(f"{name} must have {expected} rows, one per label; got {column.shape[0]}")


def check_classes(class_count: int, columns: Mapping[str, IntArray]) -> None:
    """Check that every column holds class numbers only."""
    for name, column in columns.items():
        outside = (column < 0) | (column >= class_count)
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidInputError(
                f"{name} must lie in [0, {class_count}), got {column[row]} in row {row}; leave unlabelled points out"
            )


def check_labels(labels: IntArray, logits: npt.NDArray[np.floating[Any]]) -> None:
    """Check that there is a label in [0, C) for each row of logits, (n, C)."""
    count, class_count = len(logits), logits.shape[-1]
    if labels.shape != (count,):
        raise InvalidInputError(
            f"expected a label for each of {count} rows of logits, got shape {labels.shape}; "
            "pass labels and logits of the same points"
        )
    outside = (labels < 0) | (labels >= class_count)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInputError(
            f"expected labels from 0 to {class_count - 1}, got {labels[row]} in row {row}; leave unlabelled points out"
        )
