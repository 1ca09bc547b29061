"""What the localizer predicts for the points that it rests on, by cross-fitting."""

from collections.abc import Callable

import numpy as np

from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.types import Float32Array, FloatArray, IntArray


def crossfitted_localizer(
    vectors: Callable[[IntArray], Float32Array],
    knn_logits: FloatArray,
    fold: IntArray,
    eta_loc: float,
    *,
    memory_budget: int,
) -> FloatArray | None:
    """Return the localizer's output for each point of `vp`, which is its support, from the points of the other folds.

    Otherwise each point would be its own nearest support, with most of the weight. eta_loc comes from `knn`.

    Args:
        vectors: Returns the vectors (m, D) of some of the n points, by their rows.
        knn_logits: (n, C) float64, KNN(x) of the points.
        fold: (n,) int64, the same for the points of one document.

    Returns:
        (n, C) float64; None if all points are in one fold.
    """
    numbers = np.unique(fold)
    if len(numbers) < 2:
        return None
    found = np.empty_like(knn_logits)
    for number in numbers:
        judged, others = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        found[judged] = localizer_logits(
            vectors(judged), vectors(others), knn_logits[others], eta_loc, memory_budget=memory_budget
        )
    return found
