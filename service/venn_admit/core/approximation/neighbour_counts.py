"""Choosing K on split knn, which the KNN is fitted on anyway: what several numbers of neighbours make of it.

Source: Schmaltz & Rasooly (2022) leave K to be chosen on the data that the KNN is fitted on; docs/PROCEDURE.md,
section 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from venn_admit.core.approximation.fit import fit_knn
from venn_admit.core.approximation.knn import approximate
from venn_admit.core.types import BoolArray, Float32Array, IntArray, Neighbours, Support
from venn_admit.errors import InvalidInputError

TRIED = (5, 10, 25, 50, 100, 200)
SLACK = 0.005
"""So little separation is no reason for more neighbours, each of which is searched, stored and weighed."""


@dataclass(frozen=True, slots=True)
class TriedCount:
    """What a number of neighbours makes of split knn.

    Attributes:
        discrepancies: Points of the development half on which KNN and network predict different classes.
        points: Points of the development half.
        full_matches: The share of all points of knn with q = K, between which q does not tell.
        separation: How well q tells right predictions of the KNN from wrong ones: the share of pairs of a right and a
            wrong one in which the right one has the larger q, equal ones counting half; 0.5 is chance.
    """

    neighbour_count: int
    discrepancies: int
    points: int
    full_matches: float
    separation: float


def try_neighbour_counts(
    neighbours: Neighbours,
    logits: Float32Array,
    labels: IntArray,
    support: Support,
    *,
    document_keys: Sequence[str],
    row_keys: Sequence[str],
    seed: int,
    counts: Sequence[int],
) -> Iterator[TriedCount]:
    """Fit the KNN with each number of neighbours, and yield what it makes of the points it is fitted on.

    Args:
        neighbours: (n, K), as many as the largest number that is tried.
        logits: (n, C) float32, f(x).
        support: f(x_k) and labels of the training exemplars.
        counts: Numbers of neighbours, ascending.

    Raises:
        InvalidInputError: More neighbours are tried than are given.
        NotReadyError: There are fewer than two documents, or all neighbours lie at distance 0.
    """
    given = neighbours.indices.shape[1]
    if max(counts) > given:
        raise InvalidInputError(f"expected at least {max(counts)} neighbours of each point to try, got {given}")
    for count in counts:
        nearest = Neighbours(neighbours.indices[:, :count], neighbours.distances[:, :count])
        fitted = fit_knn(nearest, logits, support, document_keys=document_keys, row_keys=row_keys, seed=seed)
        view = approximate(nearest, support, fitted.parameters)
        yield TriedCount(
            count,
            fitted.dev_discrepancies,
            fitted.dev_count,
            float((view.match_count == count).mean()),
            separation(view.match_count, view.predicted == labels),
        )


def separation(match_count: IntArray, right: BoolArray) -> float:
    """Return how well q tells right predictions from wrong ones, as `TriedCount` has it.

    Examples:
        >>> separation(np.array([0, 3, 5, 5]), np.array([False, True, True, False]))
        0.625
    """
    of_wrong = np.sort(match_count[~right])
    below = np.searchsorted(of_wrong, match_count[right], side="left")
    up_to = np.searchsorted(of_wrong, match_count[right], side="right")
    pairs = len(of_wrong) * len(below)
    return float((below + up_to).sum() / (2 * pairs)) if pairs else 0.5


def choose(tried: Sequence[TriedCount]) -> TriedCount:
    """Return the smallest K whose q tells about as much as that of any, among those that follow the network as well.

    A number of neighbours is left out if its discrepancies exceed the fewest by more than their square root, a standard
    error; what tells less by `SLACK` at most tells about as much.

    Args:
        tried: At least one.

    Examples:
        >>> few, some, many = (5, 9, 500, 0.8, 0.71), (25, 8, 500, 0.6, 0.78), (200, 30, 500, 0.0, 0.9)
        >>> tried = [TriedCount(*few), TriedCount(*some), TriedCount(*many)]
        >>> choose(tried).neighbour_count
        25
    """
    fewest = min(one.discrepancies for one in tried)
    near = [one for one in tried if one.discrepancies <= fewest + sqrt(fewest)]
    best = max(one.separation for one in near)
    return min((one for one in near if one.separation >= best - SLACK), key=lambda one: one.neighbour_count)
