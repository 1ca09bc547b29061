"""The `reliability` score: how likely a prediction is right, judged by the network and the KNN (PROCEDURE, section 9).

It is fitted on `knn` alone. The promise of Venn-Abers does not depend on how well it fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.logistic import enough_points, fit_logistic, linear, row_order, sigmoid
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.scores import FEATURES, network_score, reliability_features
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.types import NO_MATCH_COUNT, Approximation, BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

ALL_CLASSES = "all"


@dataclass(frozen=True, slots=True, eq=False)
class ClassModel:
    """Logistic regression of right / wrong on the features.

    Attributes:
        mean: (8,) float64, of each feature over the points that it was fitted on.
        sd: (8,) float64, > 0, their standard deviation (ddof 0); 1 for a feature that does not vary.
        coefficients: (8,) float64, of the standardised features.
        intercept: b.
        points: The number of points that it was fitted on.
    """

    mean: FloatArray
    sd: FloatArray
    coefficients: FloatArray
    intercept: float
    points: int


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityModel:
    """The fitted score.

    Attributes:
        median_distance: m > 0, the median of d over knn; 1 if that is 0.
        models: Models by the number of a predicted class, in decimal digits, or `ALL_CLASSES` for the classes that are
            not listed. If it is empty, the score is that of the network.
    """

    median_distance: float
    models: Mapping[str, ClassModel]

    def document(self) -> dict[str, Any]:
        """Return the model as JSON takes it; `of_document` gives back the same bits."""
        return {
            "median_d": self.median_distance,
            "models": {
                key: {
                    "mean": model.mean.tolist(),
                    "sd": model.sd.tolist(),
                    "coefficients": model.coefficients.tolist(),
                    "intercept": model.intercept,
                    "points": model.points,
                }
                for key, model in self.models.items()
            },
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what `document` wrote.

        Args:
            document: With `median_d` and `models`.

        Raises:
            InvalidInputError: Something is missing or has another shape.
        """
        try:
            models = {str(key): _read_model(fields) for key, fields in document["models"].items()}
            return cls(median_distance=float(document["median_d"]), models=models)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                "expected a reliability model with median_d and models, each with mean, sd, coefficients, intercept "
                f"and points, got one where {error!r}; fit the model again"
            ) from error


def fit_reliability(
    logits: Float32Array, view: Approximation, label: IntArray, *, neighbour_count: int
) -> ReliabilityModel:
    """Fit the score on the points of `knn`. Neither their order nor the number of threads changes a bit.

    A predicted class has a model of its own if at least 50 points are predicted as it, 5 of them right and 5 wrong. A
    model of all points serves the other classes, if all points together are as many.

    Raises:
        NotReadyError: The regression found no minimum.
    """
    check_lengths(logits=logits, view=view.predicted, label=label)
    predicted = network_prediction(logits)
    check_classes(logits.shape[1], {"label": label})
    # The order of the rows does not show in a median: it is one of them, or the mean of two.
    median_distance = float(np.median(view.distance)) if len(label) else 0.0
    median_distance = median_distance or 1.0
    features = reliability_features(logits, view, neighbour_count=neighbour_count, median_distance=median_distance)
    right = label == predicted
    groups = {str(number): predicted == number for number in range(logits.shape[1])}
    groups[ALL_CLASSES] = np.ones(len(label), dtype=np.bool_)
    models = {
        key: _fit_class(features[:, rows], right[rows]) for key, rows in groups.items() if enough_points(right[rows])
    }
    return ReliabilityModel(median_distance=median_distance, models=models)


def reliability_score(
    model: ReliabilityModel, logits: Float32Array, view: Approximation, *, neighbour_count: int
) -> FloatArray:
    """Return s of n points, each the same to the last bit whatever the others are: (n,) float64 in [0, 1]."""
    if not model.models:
        return network_score(logits)
    class_count = logits.shape[1]
    models = [model.models.get(str(number), model.models.get(ALL_CLASSES)) for number in range(class_count)]
    predicted = network_prediction(logits)
    lacking = [number for number in np.unique(predicted).tolist() if models[number] is None]
    if lacking:
        raise InvalidInputError(
            f"expected a reliability model of class {lacking[0]} or of all classes, got one of "
            f"{', '.join(model.models)}; fit the model again"
        )
    features = reliability_features(
        logits, view, neighbour_count=neighbour_count, median_distance=model.median_distance
    )
    some = next(iter(model.models.values()))
    tables = [found or some for found in models]  # a class that lacks a model has no points here
    mean = np.stack([table.mean for table in tables], axis=1)[:, predicted]  # (8, n)
    sd = np.stack([table.sd for table in tables], axis=1)[:, predicted]
    coefficients = np.stack([table.coefficients for table in tables], axis=1)[:, predicted]
    intercept = np.array([table.intercept for table in tables])[predicted]
    return sigmoid(linear((features - mean) / sd, coefficients, intercept))


def _fit_class(features: FloatArray, right: BoolArray) -> ClassModel:
    order = row_order(features, right)
    features, right = np.ascontiguousarray(features[:, order]), right[order]
    count = len(right)
    varies = features.min(axis=1) != features.max(axis=1)
    mean = np.array([np.sum(row) / count for row in features])
    centred = features - mean[:, np.newaxis]
    sd = np.sqrt(np.array([np.sum(np.square(row)) / count for row in centred]))
    # The rounded mean of equal numbers may be another number, and their sd above 0.
    sd = np.where(varies & (sd > 0), sd, 1.0)
    coefficients, intercept = fit_logistic(centred / sd[:, np.newaxis], right)
    return ClassModel(mean=mean, sd=sd, coefficients=coefficients, intercept=intercept, points=count)


def _read_model(fields: Mapping[str, Any]) -> ClassModel:
    arrays = [np.asarray(fields[name], dtype=np.float64) for name in ("mean", "sd", "coefficients")]
    if any(array.shape != (len(FEATURES),) for array in arrays):
        raise ValueError(f"an array has not {len(FEATURES)} numbers")
    mean, sd, coefficients = arrays
    return ClassModel(mean, sd, coefficients, float(fields["intercept"]), int(fields["points"]))


def scored_points(
    kind: ScoreKind,
    model: ReliabilityModel | None,
    logits: Float32Array,
    view: Approximation | None,
    *,
    neighbour_count: int | None,
) -> CellPoints:
    """Return the network's predictions of n points, and how likely they are right by a kind of score."""
    if kind is ScoreKind.NETWORK:
        score = network_score(logits)
    else:
        assert model is not None, "the reliability score needs its model"
        assert view is not None, "the reliability score needs the KNN's view"
        assert neighbour_count is not None, "the KNN's view comes with K"
        score = reliability_score(model, logits, view, neighbour_count=neighbour_count)
    match_count = np.full(len(logits), NO_MATCH_COUNT) if view is None else view.match_count
    return CellPoints(network_prediction(logits), match_count, score)
