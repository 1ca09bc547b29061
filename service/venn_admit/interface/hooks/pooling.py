"""A vector for each row out of what a layer returns: tensors of several dimensions, tuples, outputs of transformers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from venn_admit.errors import InvalidInputError
from venn_admit_client.naming import type_text

if TYPE_CHECKING:
    from torch import Tensor

POOLINGS = ("first", "mean", "max")


def states_of(value: Any) -> "Tensor":
    """Return the tensor in what a layer takes or returns: itself, the first of a tuple, or `last_hidden_state`.

    Raises:
        InvalidInputError: There is none.
    """
    import torch

    found = getattr(value, "last_hidden_state", None)
    if found is None:
        is_sequence = isinstance(value, (tuple, list)) and len(value) > 0
        found = value[0] if is_sequence else value
    if isinstance(found, torch.Tensor):
        return found
    members = f" with {', '.join(map(repr, value))}" if isinstance(value, Mapping) else ""
    raise InvalidInputError(
        f"expected a tensor, or a tuple that begins with one, got {type_text(value)}{members}; choose the tensor "
        "by reduce=lambda output: ..."
    )


def flattened(states: "Tensor") -> "Tensor":
    """Return (n, D, 1, 1), as adaptive pooling leaves it, as (n, D), and anything else as it is."""
    if states.ndim > 2 and all(size == 1 for size in states.shape[2:]):
        return states.reshape(states.shape[0], states.shape[1])
    return states


def pooled(states: "Tensor", pooling: str, mask: Any) -> "Tensor":
    """Return a vector for each row, (n, D), out of states of a sequence or a feature map.

    Args:
        states: (n, T, D), or (n, D, height, width), which `first` does not take.
        pooling: `first`, `mean` or `max`: over the positions that count.
        mask: (n, T), nonzero at the positions that count; None: all do. All positions of a feature map count.

    Raises:
        InvalidInputError: The states or the mask have another shape, or no position of a row counts.
    """
    import torch

    if states.ndim == 4 and pooling != "first":
        return states.mean(dim=(2, 3)) if pooling == "mean" else states.amax(dim=(2, 3))
    if states.ndim != 3:
        maps = "" if pooling == "first" else " or (n, D, height, width)"
        raise InvalidInputError(
            f"expected shape (n, T, D){maps} for reduce={pooling!r}, got {tuple(states.shape)}; leave reduce out if "
            "that is (n, D), or give a function"
        )
    counts = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    if mask is not None:
        counts = torch.as_tensor(mask, device=states.device) != 0
    if counts.shape != states.shape[:2]:
        raise InvalidInputError(
            f"expected a mask of shape {tuple(states.shape[:2])}, as the states have {tuple(states.shape)}, got "
            f"{tuple(counts.shape)}; give mask= or reduce= as a function"
        )
    if not (counted := counts.any(dim=1)).all():
        row = int(counted.int().argmin())
        raise InvalidInputError(
            f"expected a mask with a position that counts in every row, got none in row {row} of the batch; leave the "
            "row out, or let its mask have one"
        )
    if pooling == "first":
        return states[torch.arange(len(states), device=states.device), counts.int().argmax(dim=1)]
    left_out = ~counts.unsqueeze(2)  # (n, T, 1)
    if pooling == "max":
        return states.masked_fill(left_out, float("-inf")).amax(dim=1)
    totals = states.float().masked_fill(left_out, 0).sum(dim=1)
    return totals / counts.sum(dim=1, keepdim=True)


def shape_advice(ndim: int) -> str:
    """Return what to do about states of another number of dimensions than two."""
    match ndim:
        case 3:
            return 'states of a sequence are pooled by reduce="mean", "max" or "first", or by a function'
        case 4:
            return 'a feature map is pooled by reduce="mean" or "max", or by a function'
    return "give reduce= as a function that returns one vector for each row"
