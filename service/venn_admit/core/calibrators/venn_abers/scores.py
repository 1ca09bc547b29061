"""What the scores of Venn-Abers are made of (docs/PROCEDURE.md, section 9).

Every number of a point has the same bits whatever batch it is in and wherever in it.
"""

import numpy as np

from venn_admit.core.approximation.knn import network_prediction, softmax
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import Approximation, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

FEATURES = (
    "logit of the network's probability",
    "lead of the network's highest probability",
    "logit of the KNN's probability",
    "KNN agrees",
    "share of matches",
    "no match",
    "all neighbours match",
    "log of relative distance",
)
"""The features of the `reliability` score, in the order of their coefficients."""

_LEAST_PROBABILITY = 1e-12


def network_score(logits: Float32Array) -> FloatArray:
    """Return s = softmax(f)_yhat of the network's prediction yhat, in float64: (n,) float64 in [1 / C, 1].

    Examples:
        >>> network_score(np.array([[0.0, 0.0], [0.0, 100.0]], dtype=np.float32)).tolist()
        [0.5, 1.0]
    """
    return _of_class(softmax(logits), network_prediction(logits))


def reliability_features(
    logits: Float32Array, view: Approximation, *, neighbour_count: int, median_distance: float
) -> FloatArray:
    """Return the features of the `reliability` score, one contiguous row for each of them.

    With p = softmax(f), yhat its argmax, pi the KNN's softmax, a = [argmax KNN = yhat] and q' = q if a, otherwise 0:

        logit(p_yhat);  p_(1) - p_(2);  logit(pi_yhat);  a;  q' / K;  [q' = 0];  [q' = K];  log(1 + d / m)

    where logit clips its argument to [1e-12, 1 - 1e-12], and p_(1) and p_(2) are the two largest probabilities.

    Args:
        median_distance: m > 0.

    Returns:
        (8, n) float64, in the order of `FEATURES`.

    Raises:
        InvalidInputError: The arrays have other shapes or values, or a distance is so large that it has no logarithm.
    """
    check_lengths(logits=logits, view=view.predicted)
    network = softmax(logits)
    predicted = network_prediction(logits)
    highest = _of_class(network, predicted)
    np.put_along_axis(network, predicted[:, np.newaxis], -1.0, axis=1)
    second = network.max(axis=1)
    agrees = view.predicted == predicted
    match_count = np.where(agrees, view.match_count, 0)
    with np.errstate(over="ignore"):
        relative_distance = view.distance / median_distance
    features = np.stack(
        [
            _logit(highest),
            highest - second,
            _logit(_of_class(softmax(view.logits), predicted)),
            agrees,
            match_count / neighbour_count,
            match_count == 0,
            match_count == neighbour_count,
            np.log1p(relative_distance),
        ]
    )  # (8, n)
    wrong = np.flatnonzero(~np.isfinite(features[-1]))
    if wrong.size:
        raise InvalidInputError(
            f"point {wrong[0]}: expected a finite distance, in units of the median {median_distance}, got "
            f"{view.distance[wrong[0]]}; remove or repair the point"
        )
    return features


def _of_class(probabilities: FloatArray, classes: IntArray) -> FloatArray:
    """The probability of one class for each point, (n,) float64."""
    return np.take_along_axis(probabilities, classes[:, np.newaxis], axis=1)[:, 0].copy()


def _logit(probability: FloatArray) -> FloatArray:
    clipped = np.clip(probability, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return np.log(clipped) - np.log(1 - clipped)
