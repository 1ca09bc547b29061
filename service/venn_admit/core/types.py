"""The records that the core passes around: frozen dataclasses of arrays, each with its shape, dtype and unit.

Symbols in docstrings are those of Schmaltz & Rasooly (2022), *Approximate Conditional Coverage & Calibration via Neural
Model Approximations*. C is the number of classes, K the number of neighbours, D the length of an exemplar vector, n a
number of points, N the number of training exemplars.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]

UNKNOWN_LABEL = -1
NO_MATCH_COUNT = -1
"""Stands for q where there are no vectors, and so no neighbours; d is NaN then."""


def narrowed(values: IntArray) -> npt.NDArray[np.integer]:
    """Return numbers that are not negative in the fewest bytes: NumPy sorts those of one or two in linear time.

    >>> narrowed(np.array([3, 256])).dtype
    dtype('uint16')
    """
    return values.astype(np.min_scalar_type(values.max(initial=0)))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The K nearest training exemplars of each point, nearest first; ties go to the lower row.

    Attributes:
        indices: (n, K) int64, rows of the training exemplars.
        distances: (n, K) float64, Euclidean, not squared, in the units of the vectors; ascending in each row.
    """

    indices: IntArray
    distances: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What the KNN needs of the training exemplars besides their vectors.

    Attributes:
        logits: (N, C) float32, f(x_k).
        labels: (N,) int64 in [0, C).
    """

    logits: Float32Array
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class KnnParameters:
    """Parameters of the KNN approximation (eq. 1, 2).

    Attributes:
        beta: (C,) float64, the bias of each class.
        gamma: (C,) float64, the weight of the label term of each class.
        eta: Temperature of the neighbour weights, > 0, in units of distance.
    """

    beta: FloatArray
    gamma: FloatArray
    eta: float


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEpoch:
    """One line of a training log.

    Attributes:
        epoch: The number of the epoch; 0 is the start, before any step.
        loss: Mean over the points that the loss was taken over; NaN for epoch 0.
        discrepancies: Prediction discrepancies on the dev half.
        parameters: (P,) float64, namely beta, gamma and eta for the KNN, or eta_loc for the localizer.
    """

    epoch: int
    loss: float
    masked: bool
    discrepancies: int
    parameters: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """The KNN's view of n points.

    Attributes:
        logits: (n, C) float64, KNN(x).
        predicted: (n,) int64, the argmax of the logits; ties go to the lower class.
        distance: (n,) float64, d >= 0, to the nearest training exemplar.
    """

    logits: FloatArray
    predicted: IntArray
    match_count: IntArray
    distance: FloatArray

    def take(self, rows: IntArray) -> "Approximation":
        """Return the points in some rows, in the order of these rows."""
        return Approximation(*(getattr(self, name)[rows] for name in self.__slots__))


def join_approximations(parts: Sequence[Approximation]) -> Approximation:
    """Return the points of some approximations under the same parameters, one after the other."""
    return Approximation(*(np.concatenate([getattr(part, name) for part in parts]) for name in Approximation.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationPoints:
    """The labelled points of one split (`mc` or `vp`) as a calibration sees them.

    Attributes:
        label: (n,) int64, y.
        predicted: (n,) int64, the KNN's prediction.
        match_count: (n,) int64, q; `NO_MATCH_COUNT` without vectors.
        distance: (n,) float64, d; NaN without vectors.
        score: (n,) float64, the nonconformity score 1 - pi^y.
    """

    label: IntArray
    predicted: IntArray
    match_count: IntArray
    distance: FloatArray
    score: FloatArray

    def take(self, rows: IntArray) -> "CalibrationPoints":
        """Return some of the points, in the order given."""
        return CalibrationPoints(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class AdmitSets:
    """ADMIT prediction sets of n points, with the evidence from `mc` that they rest on.

    Attributes:
        included: (n, C) bool, the set.
        band_size: (n, C) int64, n_c.
        threshold: (n, C) float64, tau_c; -inf if the rank exceeds n_c.
        singleton: (n,) bool, whether the set is a singleton.
        starved: (n,) bool, whether n_c < kappa for some class c.
    """

    included: BoolArray
    band_size: IntArray
    threshold: FloatArray
    singleton: BoolArray
    starved: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class VennProbabilities:
    """Venn-ADMIT probabilities of the predicted class of n points.

    Attributes:
        category_size: (n,) int64, |T|; 0 if the set is not a singleton.
        upweight: (n,) float64, w. It is 1 if plain and 1 / psi' if weighted (inf if psi' = 0); NaN if the set is not a
            singleton.
        lower: (n,) float64 in [0, 1], the lower probability; NaN if the set is not a singleton.
        upper: (n,) float64 in [0, 1], the upper probability; NaN if the set is not a singleton.
    """

    category_size: IntArray
    upweight: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The verdict on each of n points: admit or reject.

    Attributes:
        decision: (n,) int64, the admitted class, or -1.
        reason: (n,) int64, the code of a `Reason`, or `ADMITTED`.
    """

    decision: IntArray
    reason: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MethodSets:
    """The prediction sets that a method gives n points; a set that is a singleton admits the prediction.

    Attributes:
        predicted: (n,) int64, its point predictions.
        included: (n, C) bool, its sets, each of which holds the prediction.
    """

    name: str
    predicted: IntArray
    included: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class AdmitOutcome:
    """What ADMIT and Venn-ADMIT make of the KNN's predictions of n points.

    Attributes:
        included: (n, C) bool, the ADMIT set.
        lower_plain: (n,) float64, the plain lower probability of the prediction; NaN if the set is not a singleton.
        upper_plain: (n,) float64, the upper probability, under the same condition.
        lower_weighted: (n,) float64, the weighted lower probability, under the same condition.
        upper_weighted: (n,) float64, the weighted upper probability, under the same condition.
        admitted_plain: (n,) bool, whether plain Venn-ADMIT admits the prediction, whatever q is.
        admitted_weighted: (n,) bool, the same for weighted Venn-ADMIT.
    """

    included: BoolArray
    lower_plain: FloatArray
    upper_plain: FloatArray
    lower_weighted: FloatArray
    upper_weighted: FloatArray
    admitted_plain: BoolArray
    admitted_weighted: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class SelectiveMethod:
    """What a method of selective classification makes of n points; it admits a prediction or rejects it.

    Attributes:
        confidence: (n,) float64, finite, by which it ranks the predictions; None if it has no ranking of its own.
    """

    name: str
    predicted: IntArray
    admitted: BoolArray
    confidence: FloatArray | None
