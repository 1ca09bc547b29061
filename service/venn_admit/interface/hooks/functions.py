"""A function that returns vectors and logits, for models of any other kind."""

from collections.abc import Callable, Sequence
from typing import Any

from venn_admit.files.inputs import input_error
from venn_admit.interface.arrays import array_of
from venn_admit.interface.hooks.arguments import Arguments, Parameters, parameters_of
from venn_admit.interface.hooks.model import Outputs


class HookedFunction:
    """A function that takes a batch's inputs and returns a pair: vectors, or None, and logits."""

    vector_name = "vectors"

    def __init__(self, function: Callable[..., Any]) -> None:
        """Use a function."""
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self.parameters: Parameters = parameters_of(function)

    def are_rows(self, data: Any) -> bool:
        """Whether data are an array, a tensor or a DataFrame of rows."""
        return hasattr(data, "shape")

    def check_classes(self, class_names: Sequence[str]) -> None:
        """Do nothing: a function does not know its classes."""

    def class_numbers(self, labels: Sequence[Any], first_row: int) -> Sequence[Any]:  # noqa: ARG002 - as every model
        """Return the labels as they are: a function does not know its classes."""
        return labels

    def outputs(self, arguments: Arguments, mask: Any) -> Outputs:  # noqa: ARG002 - as every model
        """Call it."""
        made = self._function(*arguments.positional, **arguments.named)
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            got = f"a {type(made).__name__}"
            raise input_error(self.name, "model", "a pair (vectors, logits) from a function", got)
        vectors, logits = made
        return Outputs(None if vectors is None else array_of(vectors), array_of(logits))
