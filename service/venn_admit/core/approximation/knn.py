"""The KNN approximation of the network, and the features that partition its output.

Source: Schmaltz & Rasooly (2022), eq. 1 and 2, and the features q and d of the partitions; for conventions,
docs/PROCEDURE.md, sections 1 and 2. The results of a point have the same bits whatever batch it is in.
"""

import numpy as np

from venn_admit.core.budget import tile_rows
from venn_admit.core.checks import check_labels
from venn_admit.core.types import (
    Approximation,
    CalibrationPoints,
    Float32Array,
    FloatArray,
    IntArray,
    KnnParameters,
    Neighbours,
    Support,
)
from venn_admit.errors import InvalidInputError


def approximate(neighbours: Neighbours, support: Support, parameters: KnnParameters) -> Approximation:
    """Return the KNN's logits, prediction, match count and distance to training of n points, from their neighbours.

    Examples:
        >>> neighbours = Neighbours(indices=np.array([[2, 0]]), distances=np.array([[0.5, 0.5]]))
        >>> support = Support(
        ...     logits=np.array([[0, 0], [2, 0], [0, 2]], dtype=np.float32), labels=np.array([0, 0, 1])
        ... )
        >>> view = approximate(neighbours, support, KnnParameters(beta=np.zeros(2), gamma=np.ones(2), eta=1.0))
        >>> view.logits.round(3).tolist(), view.predicted.tolist(), view.match_count.tolist()
        ([[0.0, 0.482]], [1], [1])
    """
    logits = knn_logits(neighbours, support, parameters)
    predicted = network_prediction(logits)
    return Approximation(
        logits=logits,
        predicted=predicted,
        match_count=match_count(predicted, neighbours, support),
        distance=neighbours.distances[:, 0].copy(),
    )


def network_prediction(logits: Float32Array | FloatArray) -> IntArray:
    """Return the predicted class, yhat = argmax over classes; ties go to the lower class; (n,) int64 in [0, C).

    Examples:
        >>> network_prediction(np.array([[0.5, 2.0, 2.0]])).tolist()
        [1]
    """
    _check_logits(logits)
    predicted: IntArray = np.argmax(logits, axis=1)
    return predicted


def softmax(logits: Float32Array | FloatArray) -> FloatArray:
    """Return pi = softmax over classes, in float64: (n, C) float64 in [0, 1]; each row sums to one.

    Examples:
        >>> softmax(np.array([[1000.0, 1000.0]])).tolist()
        [[0.5, 0.5]]
    """
    _check_logits(logits)
    return _normalised_exponentials(logits.astype(np.float64))


def nonconformity(logits: FloatArray, labels: IntArray) -> FloatArray:
    """Return the conformal score 1 - pi^y of labelled points (docs/PROCEDURE.md, section 4), (n,) float64 in [0, 1].

    Examples:
        >>> nonconformity(np.array([[0.0, 0.0]]), np.array([1])).tolist()
        [0.5]
    """
    _check_logits(logits)
    check_labels(labels, logits)
    own_class = np.take_along_axis(softmax(logits), labels[:, np.newaxis], axis=1)  # (n, 1)
    return 1.0 - own_class[:, 0]


def calibration_points(view: Approximation, labels: IntArray) -> CalibrationPoints:
    """Return labelled points as bands hold them, with their nonconformity."""
    return CalibrationPoints(
        label=labels,
        predicted=view.predicted,
        match_count=view.match_count,
        distance=view.distance,
        score=nonconformity(view.logits, labels),
    )


def neighbour_weights(distances: FloatArray, eta: float) -> FloatArray:
    """Return w_k = softmax over k of -dist_k / eta (eq. 2), (n, K) float64; each row descends and sums to one.

    Args:
        distances: (n, K) float64, >= 0, ascending in each row.
        eta: Temperature > 0, in units of distance.
    """
    # The nearest distance is subtracted before the division, so that no eta is too small; a far neighbour may weigh 0.
    with np.errstate(over="ignore"):
        return _normalised_exponentials((distances[:, :1] - distances) / eta)


def knn_logits(neighbours: Neighbours, support: Support, parameters: KnnParameters) -> FloatArray:
    """Return KNN(x)^c = beta^c + sum_k w_k (tanh f^c(x_k) + gamma^c ytilde_k^c) (eq. 1), (n, C) float64.

    ytilde_k^c is +1 if c is the label of exemplar k, and -1 otherwise.
    """
    _check_neighbours(neighbours, support)
    _check_parameters(parameters, support)
    count, neighbour_count = neighbours.indices.shape
    class_count = support.logits.shape[1]
    logits = np.empty((count, class_count))
    step = tile_rows(8 * neighbour_count * (4 * class_count + 2))
    for start in range(0, count, step):
        part = slice(start, start + step)
        rows = neighbours.indices[part].T  # (K, b)
        weights = neighbour_weights(neighbours.distances[part], parameters.eta)
        terms = support.logits[rows].astype(np.float64)  # (K, b, C)
        np.tanh(terms, out=terms)
        own_class = support.labels[rows][:, :, np.newaxis] == np.arange(class_count)  # (K, b, C)
        terms += np.where(own_class, parameters.gamma, -parameters.gamma)
        terms *= weights.T[:, :, np.newaxis]
        # The sum goes neighbour by neighbour, so that its order is the same for every point.
        total = np.zeros((rows.shape[1], class_count))
        for of_rank in terms:
            total += of_rank
        logits[part] = parameters.beta + total
    return logits


def match_count(predicted: IntArray, neighbours: Neighbours, support: Support) -> IntArray:
    """Return q, the number of consecutive nearest neighbours that agree with the prediction, (n,) int64 in [0, K].

    Neighbours k = 1, 2, ... are counted while yhat(x) = yhat_k = y_k, so that both their prediction and their label
    must agree.
    """
    _check_neighbours(neighbours, support)
    if predicted.shape != neighbours.indices.shape[:1]:
        raise InvalidInputError(
            f"expected a prediction for each of {neighbours.indices.shape[0]} points, got shape "
            f"{predicted.shape}; pass predictions and neighbours of the same points"
        )
    correct = network_prediction(support.logits) == support.labels  # (N,)
    same_label = support.labels[neighbours.indices] == predicted[:, np.newaxis]  # (n, K)
    matches = correct[neighbours.indices] & same_label
    counts: IntArray = np.logical_and.accumulate(matches, axis=1).sum(axis=1, dtype=np.int64)
    return counts


def _normalised_exponentials(values: FloatArray) -> FloatArray:
    # The rows are contiguous: numpy sums such rows in an order that depends on their length alone.
    exponentials = np.exp(np.ascontiguousarray(values - values.max(axis=1, keepdims=True)))
    normalised: FloatArray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return normalised


def _check_logits(logits: Float32Array | FloatArray) -> None:
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InvalidInputError(
            f"expected logits of shape (points, classes) with at least 2 classes, got shape {logits.shape}; "
            "pass one row per point and one column per class"
        )
    step = tile_rows(logits.shape[1])  # all logits of the support take a byte each otherwise
    for start in range(0, len(logits), step):
        finite = np.isfinite(logits[start : start + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0] + (start, 0)
            raise InvalidInputError(
                f"expected finite logits, got {logits[row, column]} in row {row}, column {column}; "
                "remove or repair the row"
            )


def _check_neighbours(neighbours: Neighbours, support: Support) -> None:
    _check_logits(support.logits)
    check_labels(support.labels, support.logits)
    indices, distances = neighbours.indices, neighbours.distances
    if indices.ndim != 2 or indices.shape[1] < 1 or indices.shape != distances.shape:
        raise InvalidInputError(
            "expected neighbour indices and distances of the same shape (points, neighbours), got "
            f"{indices.shape} and {distances.shape}; pass the result of a neighbour search"
        )
    total = support.labels.size
    if indices.size and (indices.min() < 0 or indices.max() >= total):
        raise InvalidInputError(
            f"expected neighbour indices from 0 to {total - 1}, got {indices.min()} to {indices.max()}; "
            "pass the support that was searched"
        )


def _check_parameters(parameters: KnnParameters, support: Support) -> None:
    class_count = support.logits.shape[1]
    shapes = parameters.beta.shape, parameters.gamma.shape
    if shapes != ((class_count,), (class_count,)):
        raise InvalidInputError(
            f"expected beta and gamma of {class_count} classes, got shapes {shapes[0]} and {shapes[1]}; "
            "fit the parameters on this classifier"
        )
    if not (np.isfinite(parameters.beta).all() and np.isfinite(parameters.gamma).all()):
        raise InvalidInputError("expected finite beta and gamma, got NaN or infinity; fit the parameters again")
    if not (np.isfinite(parameters.eta) and parameters.eta > 0):
        raise InvalidInputError(f"expected a finite eta above 0, got {parameters.eta}; fit the parameters again")
