"""Logistic regression with a penalty, by Newton's method (docs/PROCEDURE.md, section 9).

Rows are summed in an order of their content, each sum along one contiguous array, so that neither the order in which
the rows come nor the number of threads changes the result.
"""

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import NotReadyError

LEAST_POINTS = 50
LEAST_OF_EACH = 5

_GRADIENT = 1e-10
_MOST_STEPS = 200
_SUFFICIENT = 1e-4  # of the decrease that the slope promises: Nocedal & Wright (2006), section 3.1
_RESOLUTION = 1e-12  # of objective and parameters, below which rounding decides


def sigmoid(value: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-x)) without overflow, (n,) float64 in [0, 1]."""
    small = np.exp(-np.abs(value))
    return np.where(value >= 0, 1.0, small) / (1.0 + small)


def row_order(columns: FloatArray, outcome: BoolArray) -> IntArray:
    """Return an order of n rows that depends on their content alone; rows alike may change places; (n,) int64."""
    return np.lexsort((*columns[::-1], outcome))


def enough_points(outcome: BoolArray) -> bool:
    """Return whether there are enough points for a regression: 50, 5 of them right and 5 wrong."""
    right = int(np.count_nonzero(outcome))
    return len(outcome) >= LEAST_POINTS and min(right, len(outcome) - right) >= LEAST_OF_EACH


def fit_logistic(columns: FloatArray, outcome: BoolArray) -> tuple[FloatArray, float]:
    """Minimise sum_i log(1 + exp(-z_i (w.x_i + b))) + |w|^2 / 2, with z_i = 1 or -1, over w and b.

    Every component of the gradient is below 1e-10 at the end, or as small as float64 can make it for this number of
    rows.

    Args:
        columns: (p, n) float64, x, one contiguous row a column, in the order of `row_order`.
        outcome: (n,) bool, both values among them.

    Returns:
        w, (p,) float64, and b.

    Raises:
        NotReadyError: No minimum was found, which only numbers without any sense can cause.
    """
    design = np.ascontiguousarray(np.vstack([columns, np.ones(len(outcome))]))
    share = float(np.count_nonzero(outcome)) / len(outcome)
    parameters = np.zeros(len(design))
    parameters[-1] = np.log(share / (1 - share))
    best, best_gradient = parameters, np.inf
    value = _objective(design, outcome, parameters)
    for _ in range(_MOST_STEPS):
        gradient, hessian = _derivatives(design, outcome, parameters)
        largest = float(np.abs(gradient).max())
        if largest < _GRADIENT:
            return parameters[:-1].copy(), float(parameters[-1])
        step: FloatArray = np.linalg.solve(hessian, gradient).astype(np.float64)
        tiny = bool(np.all(np.abs(step) <= _RESOLUTION * (1 + np.abs(parameters))))
        if tiny and largest >= best_gradient:
            return best[:-1].copy(), float(best[-1])
        if largest < best_gradient:
            best, best_gradient = parameters, largest
        parameters, value = _descend(design, outcome, parameters, value, step, float(gradient @ step))
    raise NotReadyError(
        f"logistic regression of {len(outcome)} points found no minimum in {_MOST_STEPS} steps; look for extreme "
        "logits or distances among the points of knn"
    )


def _descend(
    design: FloatArray, outcome: BoolArray, parameters: FloatArray, value: float, step: FloatArray, slope: float
) -> tuple[FloatArray, float]:
    """The step, halved until the objective falls by enough; with the objective there."""
    length = 1.0
    while True:
        moved = parameters - length * step
        moved_value = _objective(design, outcome, moved)
        allowed = value - _SUFFICIENT * length * slope + _RESOLUTION * (1 + abs(value))
        if moved_value <= allowed or length < _RESOLUTION:
            return moved, moved_value
        length /= 2


def _objective(design: FloatArray, outcome: BoolArray, parameters: FloatArray) -> float:
    signed = np.where(outcome, -1.0, 1.0) * linear(design[:-1], parameters[:-1], parameters[-1])
    penalty = float(np.sum(np.square(parameters[:-1]))) / 2
    return float(np.sum(np.logaddexp(0.0, signed))) + penalty


def _derivatives(design: FloatArray, outcome: BoolArray, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient (p + 1,) and Hessian (p + 1, p + 1) of the objective."""
    sign = np.where(outcome, 1.0, -1.0)
    miss = sigmoid(-sign * linear(design[:-1], parameters[:-1], parameters[-1]))
    residual, curvature = -sign * miss, miss * (1 - miss)
    size = len(design)
    penalised = np.append(np.ones(size - 1), 0.0)
    gradient = np.array([np.sum(row * residual) for row in design]) + penalised * parameters
    hessian = np.diag(penalised)
    for first in range(size):
        weighted = design[first] * curvature
        for second in range(first + 1):
            term = np.sum(weighted * design[second])
            hessian[first, second] += term
            if second < first:
                hessian[second, first] += term
    return gradient, hessian


def linear(columns: FloatArray, coefficients: FloatArray, intercept: FloatArray | float) -> FloatArray:
    """Return b + w_1 x_1 + w_2 x_2 + ..., added up in this order for every row: (n,) float64.

    Args:
        coefficients: (p,) float64, or (p, n), those of each row.
        intercept: One, or (n,).
    """
    total = np.zeros(columns.shape[1]) + intercept
    for column, coefficient in zip(columns, coefficients, strict=True):
        total += coefficient * column
    return total
