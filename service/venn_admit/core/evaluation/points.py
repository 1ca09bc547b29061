"""A labelled evaluation set: its points, and the methods compared on it.

Source: docs/PROCEDURE.md, section 8. Symbols: q = `match_count`, d = `distance`, pi = softmax of the KNN's logits, y =
`label`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from venn_admit.core.checks import check_classes, check_rows
from venn_admit.core.documents import Documents
from venn_admit.core.types import (
    AdmitOutcome,
    Approximation,
    BoolArray,
    FloatArray,
    IntArray,
    MethodSets,
    SelectiveMethod,
)
from venn_admit.errors import InvalidInputError

KNN, NETWORK = "KNN", "network"
"""The rows that admit every prediction of the KNN, or of the network."""

LOCALIZER = "localizer"
ADMIT = "ADMIT"
WEIGHTED_ADMIT = "Venn-ADMIT weighted"
UNDIVIDED_ADMIT = "Venn-ADMIT undivided"


@dataclass(frozen=True, slots=True, eq=False)
class OwnMethod:
    """The method of the calibration that is evaluated, whose verdicts are given.

    Attributes:
        baseline: The row that admits all of its predictions, `KNN` or `NETWORK`.
        confidence: (n,) float64, the lower probability that it admits by; NaN for a point that it can never admit.
        bounds: Its lower and upper probabilities, (n,) float64 each, by the weights that they are taken with.
        has_bands: Whether partitions by q and d, as bands have them, say something about it.
    """

    name: str
    baseline: str
    predicted: IntArray
    confidence: FloatArray
    bounds: Mapping[str, tuple[FloatArray, FloatArray]]
    has_bands: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictedPoints:
    """Labelled points with what is predicted for each: columns with one row per point.

    Attributes:
        network_predicted: (n,) int64, argmax f.
        view: The KNN's; None if the classifier has logits only.
        localizer_predicted: (n,) int64, or None if the localizer was not evaluated.
    """

    label: IntArray
    class_count: int
    network_predicted: IntArray
    view: Approximation | None
    localizer_predicted: IntArray | None
    documents: Documents | None = None

    @property
    def knn(self) -> Approximation:
        """The KNN's view, if there are vectors."""
        assert self.view is not None, "a classifier with logits only has no KNN"
        return self.view

    def predictions(self) -> dict[str, IntArray]:
        """Return what the network, the KNN and the localizer predict, (n,) int64 each, by name, as far as known."""
        found = {NETWORK: self.network_predicted}
        if self.view is not None:
            found[KNN] = self.view.predicted
        if self.localizer_predicted is not None:
            found[LOCALIZER] = self.localizer_predicted
        return found


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EvaluationPoints(PredictedPoints):
    """The labelled, scored points of one evaluation set. Without vectors, the method that is judged must be given.

    Attributes:
        admit: The results of ADMIT and Venn-ADMIT; None if they are left out.
        bands_part: Whether the bands of these part the points.
        comparisons: Other methods that give sets, on the same points, in the order shown.
        calibrated_by: The method that is judged, one of those above; None for weighted Venn-ADMIT.
        groups: The group of each point by the attributes that the certificate is for; None for a point in none.
        calibration_data: The points of `mc` and `vp`, predicted by what was not fitted on them; None: left out.
    """

    admit: AdmitOutcome | None
    bands_part: bool = False
    comparisons: tuple[MethodSets, ...] = ()
    selective: tuple[SelectiveMethod, ...] = ()
    calibrated_by: OwnMethod | None = None
    groups: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    calibration_data: PredictedPoints | None = None

    @property
    def own(self) -> OwnMethod:
        """The method that is judged."""
        if self.calibrated_by is not None:
            return self.calibrated_by
        outcome = self.admit
        assert outcome is not None, "weighted Venn-ADMIT is judged, but was left out"
        return OwnMethod(
            name=WEIGHTED_ADMIT,
            baseline=KNN,
            predicted=self.knn.predicted,
            confidence=outcome.lower_weighted,
            bounds={
                "plain": (outcome.lower_plain, outcome.upper_plain),
                "weighted": (outcome.lower_weighted, outcome.upper_weighted),
            },
            has_bands=True,
        )


def standard_methods(points: EvaluationPoints, neighbour_count: int | None) -> Iterator[MethodSets]:
    """Yield KNN, the comparisons, ADMIT, the four Venn-ADMIT variants and the selective methods, as prediction sets.

    The sets of KNN are its predictions; the network stands beside it if the method that is judged decides on the
    network's. Venn-ADMIT and the selective methods make no statement about a point that they reject: the set is all
    classes. The variants "q = K" also reject every point with q < K. Without vectors there is no KNN.
    """
    check_points(points)

    def admitting(name: str, predicted: IntArray, admitted: BoolArray) -> MethodSets:
        alone = predicted[:, np.newaxis] == np.arange(points.class_count)  # (n, C)
        return MethodSets(name, predicted, alone | ~admitted[:, np.newaxis])

    everything = np.ones(points.label.size, np.bool_)
    if points.view is not None:
        yield admitting(KNN, points.view.predicted, everything)
    if points.own.baseline == NETWORK:
        yield admitting(NETWORK, points.network_predicted, everything)
    yield from points.comparisons
    if points.admit is not None:
        predicted, full = points.knn.predicted, points.knn.match_count == neighbour_count
        yield MethodSets(ADMIT, predicted, points.admit.included)
        outcomes = {"Venn-ADMIT plain": points.admit.admitted_plain, WEIGHTED_ADMIT: points.admit.admitted_weighted}
        for name, admitted in outcomes.items():
            yield admitting(name, predicted, admitted)
            yield admitting(f"{name}, q = K", predicted, admitted & full)
    for method in points.selective:
        yield admitting(method.name, method.predicted, method.admitted)


def check_points(points: EvaluationPoints) -> None:
    """Check an evaluation set."""
    check_predicted(points)
    check_rows(
        points.label.size,
        {
            **({} if points.admit is None else {name: getattr(points.admit, name) for name in AdmitOutcome.__slots__}),
            **{f"admitted of {method.name!r}": method.admitted for method in points.selective},
        },
    )
    if points.admit is not None and points.admit.included.shape != points.knn.logits.shape:
        raise InvalidInputError(
            f"included must have the same shape as logits, {points.knn.logits.shape}; got {points.admit.included.shape}"
        )


def check_predicted(points: PredictedPoints) -> None:
    """Check labelled points with predictions."""
    n = points.label.size
    if n == 0:
        raise InvalidInputError(
            "an evaluation set needs at least one labelled point, got none; label some of its points"
        )
    predictions = {"network_predicted": points.network_predicted}
    evidence: dict[str, IntArray | FloatArray] = {}
    if (view := points.view) is not None:
        predictions["predicted"] = view.predicted
        evidence = {"match_count": view.match_count, "distance": view.distance, "logits": view.logits}
    if points.localizer_predicted is not None:
        predictions["localizer_predicted"] = points.localizer_predicted
    check_rows(n, {**evidence, **predictions})
    if points.view is not None and points.view.logits.shape[1:] != (points.class_count,):
        raise InvalidInputError(
            f"expected logits of {points.class_count} classes, got shape {points.view.logits.shape}; pass those of the "
            "same classifier"
        )
    check_classes(points.class_count, {"label": points.label, **predictions})
