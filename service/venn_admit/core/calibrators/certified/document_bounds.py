"""Bounds of ratios of means over documents, whose points may depend on each other.

A ratio of means is below r if the mean of the one less r times the other is below 0. That is tested by a game whose
stakes are the same for every r, so that a larger r is refused with a smaller one.
"""

import numpy as np

from venn_admit.core.calibrators.certified.hypothesis_tests import staked_p_values, stakes_of
from venn_admit.core.types import FloatArray, IntArray

LARGEST_LOG_RATIO = 25.0
"""Bounds of the logarithms of ratios are no larger."""
HALVINGS = 40
"""How often the interval that holds them is halved."""


def document_counts(document: IntArray, cell: IntArray, cell_count: int) -> FloatArray:
    """Return how many points of each document are in each cell, (documents, cell_count) float64.

    Args:
        document: (n,) int64, the number of the document of each point, from 0.
        cell: (n,) int64 in [0, cell_count).

    Examples:
        >>> document_counts(np.array([0, 0, 1]), np.array([1, 1, 0]), 2).tolist()
        [[0.0, 2.0], [1.0, 0.0]]
    """
    found = np.bincount(document * cell_count + cell, minlength=(1 + int(document.max(initial=-1))) * cell_count)
    return found.reshape(-1, cell_count).astype(np.float64)


def counted_as(counts: FloatArray, size: float) -> FloatArray:
    """Return the counts of documents of which those with more points count as one of this size.

    Args:
        counts: (documents, m) float64.
    """
    weighed: FloatArray = counts * np.minimum(1.0, size / counts.sum(axis=1, keepdims=True))
    return weighed


def largest_ratios(
    counts: tuple[FloatArray, FloatArray],
    known: tuple[FloatArray, FloatArray],
    *,
    size: float | FloatArray,
    level: float,
    uniform: float = 1.0,
) -> FloatArray:
    """Return bounds from above of ratios of means over documents, each of which fails with probability `level` at most.

    Args:
        counts: (documents, m) float64 each, the one, in [0, size], and the other, in an order without regard to them.
        known: The same of documents that propose.
        size: The points of the largest document; one number, or one for each of the first counts.
        uniform: In (0, 1], drawn independently of the documents.

    Returns:
        (m,) float64.
    """
    of, to = (each / size for each in counts)
    known_of, known_to = (each / size for each in known)
    foretold = (known_of.sum(axis=0) + 0.5 / size) / (known_to.sum(axis=0) + 0.5 / size)
    stakes = stakes_of(of - foretold * to, known_of - foretold * known_to, level)
    low, high = np.full((2, of.shape[1]), LARGEST_LOG_RATIO) * [[-1], [1]]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refused = staked_p_values(of - np.exp(middle) * to, stakes, uniform) <= level
        low, high = np.where(refused, low, middle), np.where(refused, middle, high)
    ratios: FloatArray = np.exp(high)
    return ratios
