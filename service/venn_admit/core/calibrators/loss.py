"""What errors cost: a loss for each true and each predicted class; usually the 0/1 loss."""

from decimal import Decimal
from typing import TypeAlias

from venn_admit.errors import InvalidInputError

LossMatrix: TypeAlias = tuple[tuple[Decimal, ...], ...]
"""(C, C), what it costs to predict a class; rows are true classes, columns predicted ones."""

LARGEST_LOSS = 10**9


def check_loss(loss: LossMatrix, alpha: Decimal, class_count: int) -> None:
    """Check a loss: C rows of C values in [0, 1e9], 0 for a right prediction, one at least above alpha.

    Args:
        loss: (C, C), what it costs to predict a class; rows are true classes.
        alpha: The largest mean loss, in (0, 1).

    Raises:
        InvalidInputError: It is none; the message says what was expected and received.
    """
    shapes = sorted({len(row) for row in loss})
    if len(loss) != class_count or shapes != [class_count]:
        raise InvalidInputError(
            f"loss: expected a row for each of {class_count} true classes with a value for each of {class_count} "
            f"predicted classes, got {len(loss)} rows of {' or '.join(map(str, shapes)) or 'no'} values"
        )
    for label, row in enumerate(loss):
        for predicted, value in enumerate(row):
            cell = f"in row {label}, column {predicted}"
            if not (value.is_finite() and 0 <= value <= LARGEST_LOSS):
                raise InvalidInputError(f"loss: expected values from 0 to {LARGEST_LOSS:,}, got {value} {cell}")
            if label == predicted and value:
                raise InvalidInputError(
                    f"loss: a right prediction costs nothing, got {value} {cell}; leave 0 on the diagonal, and take "
                    "what acting costs anyway off alpha"
                )
    if max(map(max, loss)) <= alpha:
        raise InvalidInputError(
            f"loss: no value is above alpha = {alpha}, so that nothing could cost more on average; measure losses in "
            "a smaller unit, or lower alpha"
        )


def is_zero_one(loss: LossMatrix) -> bool:
    """Return whether every error costs 1 and a right prediction nothing."""
    return all(value == (label != predicted) for label, row in enumerate(loss) for predicted, value in enumerate(row))
