"""What a hook needs of a model, whatever its kind."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from venn_admit.files.inputs import input_error
from venn_admit.interface.hooks.arguments import Arguments, Parameters

Floats = npt.NDArray[Any]


class Outputs(NamedTuple):
    """The output for a batch: vectors (n, D), r, or None if there are none, and logits (n, C), f(x)."""

    vectors: Floats | None
    logits: Floats


class Model(ABC):
    """A model whose vectors and logits can be read, and which does not know its classes, unless it says otherwise.

    Attributes:
        name: What messages call it.
        vector_name: What messages call its vectors.
        parameters: The names of what it takes; None if it takes one thing only.
    """

    name: str
    vector_name = "vectors"
    parameters: Parameters | None = None

    @abstractmethod
    def outputs(self, arguments: Arguments, mask: Any) -> Outputs:
        """Run it on a batch; mask: which positions of a sequence count, or None.

        Raises:
            InvalidInputError: The output has no vectors or no logits.
        """

    def are_rows(self, data: Any) -> bool:
        """Whether data are rows, which are to be divided into batches, and not batches."""
        return hasattr(data, "shape")

    def class_numbers(self, labels: Sequence[Any], first_row: int) -> Sequence[Any]:  # noqa: ARG002 - estimators use it
        """Return the labels of the rows from `first_row` on as a classifier knows them.

        Raises:
            InvalidInputError: The model knows no such class.
        """
        return labels

    def check_classes(self, class_names: Sequence[str]) -> None:  # noqa: B027 - nothing is known of classes
        """Raise InvalidInputError if its classes cannot be those of a classifier, in the same order."""


def two_logits(margins: Floats) -> Floats:
    """Return the logits (n, 2) of a binary model with one output z, (n,) or (n, 1): -z / 2 and z / 2.

    >>> two_logits(np.array([3.0])).tolist()
    [[-1.5, 1.5]]
    """
    halves = margins.reshape(-1) / 2
    return np.stack([-halves, halves], axis=1)


def check_outputs(name: str, vector_name: str, outputs: Outputs) -> None:
    """Raise InvalidInputError unless vectors and logits have two dimensions, and as many rows."""
    vectors, logits = outputs
    if logits.ndim != 2:
        raise input_error(name, "logits", "shape (n, C)", logits.shape, "choose them: logits=lambda output: ...")
    if vectors is None:
        return
    if vectors.ndim != 2:
        raise input_error(name, vector_name, "shape (n, D)", vectors.shape)
    if len(vectors) != len(logits):
        raise input_error(
            name,
            vector_name,
            f"{len(logits)} rows, as many as the logits have",
            f"shape {vectors.shape}",
            "the first dimension must be that of the batch",
        )
