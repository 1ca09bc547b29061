"""The members of a batch that a model is called with."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from venn_admit.errors import InvalidInputError
from venn_admit_client.naming import type_text

LABEL_NAMES = ("labels", "label")
"""Members of a mapping that hold labels, and go into no model, unless it is said otherwise."""


class Arguments(NamedTuple):
    """What a model is called with."""

    positional: tuple[Any, ...]
    named: dict[str, Any]


class Parameters(NamedTuple):
    """What a callable takes: the names of its parameters, and whether it takes others as well."""

    names: frozenset[str]
    takes_others: bool


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return what a callable takes.

    >>> sorted(parameters_of(lambda pixels, mask=None: None).names)
    ['mask', 'pixels']
    """
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return Parameters(frozenset(), takes_others=True)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Parameters(
        frozenset(one.name for one in found if one.kind in named),
        any(one.kind == inspect.Parameter.VAR_KEYWORD for one in found),
    )


def arguments_of(batch: Any, inputs: Any, used: frozenset[str | int], parameters: Parameters | None) -> Arguments:
    """Return what a model is called with.

    Args:
        batch: A mapping, a tuple or list, or the input itself.
        inputs: The members that go in, as `Hook.over` describes them; None: those that are left.
        used: The names and positions of members that are something else.
        parameters: What the model takes; None: one thing.

    Raises:
        InvalidInputError: The batch has no such member, or it is not clear which members go in.
    """
    if inputs is not None:
        return _chosen(batch, inputs, parameters)
    if isinstance(batch, Mapping):
        return _by_name(batch, used, parameters)
    if is_members(batch):
        left = [position for position in range(len(batch)) if position not in used]
        if left and (len(left) == 1 or len(batch) == 2):
            return Arguments((batch[left[0]],), {})
        raise InvalidInputError(
            f"inputs: expected a batch with one member beside labels, ids and so on, got {len(batch)}, of which "
            f"{len(left)} are not named; say which is what, such as inputs=0, labels=1, ids=2"
        )
    columns = [name for name in used if is_frame(batch) and name in batch.columns]
    return Arguments((batch.drop(columns=columns) if columns else batch,), {})


def member(batch: Any, key: str | int, what: str) -> Any:
    """Return a member of a batch by its name or position; what: what messages call it.

    Raises:
        InvalidInputError: There is none.
    """
    try:
        if isinstance(key, int) or isinstance(batch, Mapping) or is_frame(batch):
            return batch[key]
        return getattr(batch, key)
    except (KeyError, IndexError, AttributeError, TypeError):
        raise InvalidInputError(f"{what}: the batch has no member {key!r}; it is {_described(batch)}") from None


def is_members(batch: Any) -> bool:
    """Whether a batch is a tuple or list of inputs, labels and so on; a list of texts is an input itself."""
    return isinstance(batch, (tuple, list)) and not all(isinstance(one, str) for one in batch)


def is_frame(batch: Any) -> bool:
    """Whether a batch is a DataFrame of pandas."""
    return hasattr(batch, "columns") and hasattr(batch, "drop")


def _chosen(batch: Any, inputs: Any, parameters: Parameters | None) -> Arguments:
    if callable(inputs):
        made = inputs(batch)
        if isinstance(made, Mapping) and parameters is not None:
            return Arguments((), dict(made))
        return Arguments(made if isinstance(made, tuple) else (made,), {})
    if isinstance(inputs, (str, int)):
        return Arguments((member(batch, inputs, "inputs"),), {})
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(key, (str, int)) for key in inputs):
        raise InvalidInputError(
            f"inputs: expected a name, a position, a list of them, or a function, got {type_text(inputs)}"
        )
    if is_frame(batch):
        return Arguments((batch[list(inputs)],), {})
    return Arguments(
        tuple(member(batch, key, "inputs") for key in inputs if isinstance(key, int)),
        {key: member(batch, key, "inputs") for key in inputs if isinstance(key, str)},
    )


def _by_name(batch: Mapping[Any, Any], used: frozenset[str | int], parameters: Parameters | None) -> Arguments:
    left = {name: value for name, value in batch.items() if name not in used and name not in LABEL_NAMES}
    if parameters is not None:
        taken = {name: value for name, value in left.items() if name in parameters.names}
        if taken or (left and parameters.takes_others):
            return Arguments((), taken or left)
    takes = "" if parameters is None else f", which takes {', '.join(sorted(parameters.names))}"
    raise InvalidInputError(
        f"inputs: expected members that the model takes by name{takes}, got {_described(batch)}; choose, such as "
        'inputs="pixels", or inputs=lambda batch: (batch,) for all of it'
    )


def _described(batch: Any) -> str:
    if isinstance(batch, Mapping) or is_frame(batch):
        return f"{type_text(batch)} with the members {', '.join(map(repr, batch))}"
    if isinstance(batch, (tuple, list)):
        return f"{type_text(batch)} of {len(batch)} members"
    return type_text(batch)
