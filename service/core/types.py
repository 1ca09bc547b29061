"""What the core passes around: frozen records of arrays, each with its shape, dtype and unit.

Symbols in docstrings are those of Schmaltz & Rasooly (2022), *Approximate Conditional Coverage &
Calibration via Neural Model Approximations*. C is the number of classes, K the number of neighbours,
D the length of an exemplar vector, n a number of points, N the number of training exemplars.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]

UNKNOWN_LABEL = -1


class Split(StrEnum):
    """Which use an exemplar has (docs/PROCEDURE.md, Data)."""

    TRAIN = "train"
    KNN = "knn"
    MC = "mc"
    VP = "vp"
    SCORED = "scored"


HELD_OUT_SPLITS = (Split.KNN, Split.MC, Split.VP)
"""Those that held-out labelled exemplars are divided into."""


class Reason(StrEnum):
    """Why a prediction was rejected; the first that applies, in this order."""

    BAND_BELOW_KAPPA = "band below kappa"
    SET_NOT_SINGLETON = "set not a singleton"
    PROBABILITY_BELOW_THRESHOLD = "probability below threshold"
    MATCH_COUNT_BELOW_K = "q below K"


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The K nearest training exemplars of each point, nearest first, ties to the lower row.

    indices: (n, K) int64, rows of the training exemplars.
    distances: (n, K) float64, Euclidean, not squared, in the units of the vectors; ascending in each row.
    """

    indices: IntArray
    distances: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What the KNN needs of the training exemplars beside their vectors.

    logits: (N, C) float32, f(x_k). labels: (N,) int64 in [0, C).
    """

    logits: Float32Array
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class KnnParameters:
    """Parameters of the KNN approximation (eq. 1, 2): beta (C,), gamma (C,), float64; eta > 0."""

    beta: FloatArray
    gamma: FloatArray
    eta: float


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEpoch:
    """One line of a training log.

    epoch: 0 is the start, before any step. loss: mean over the points it was taken over; NaN for epoch 0.
    masked: whether the loss was over discrepant points only. discrepancies: on the dev half.
    parameters: (P,) float64: beta, gamma, eta for the KNN; eta_loc for the localizer.
    """

    epoch: int
    loss: float
    masked: bool
    discrepancies: int
    parameters: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """The KNN's view of n points.

    logits: (n, C) float64, KNN(x). predicted: (n,) int64, its argmax (ties to the lower class).
    match_count: (n,) int64, q in [0, K]. distance: (n,) float64, d >= 0, to the nearest training exemplar.
    """

    logits: FloatArray
    predicted: IntArray
    match_count: IntArray
    distance: FloatArray

    def take(self, rows: IntArray) -> "Approximation":
        """The points in these rows, in this order; rows: (m,) int64."""
        return Approximation(
            logits=self.logits[rows],
            predicted=self.predicted[rows],
            match_count=self.match_count[rows],
            distance=self.distance[rows],
        )

    def followed_by(self, other: "Approximation") -> "Approximation":
        """These points and then those of `other`."""
        return Approximation(
            logits=np.concatenate([self.logits, other.logits]),
            predicted=np.concatenate([self.predicted, other.predicted]),
            match_count=np.concatenate([self.match_count, other.match_count]),
            distance=np.concatenate([self.distance, other.distance]),
        )


@dataclass(frozen=True, slots=True)
class CalibratorSettings:
    """What a calibrator is asked for.

    alpha: in (0, 1), exact decimal. delta: band radius in sample standard deviations, > 0, may be inf.
    kappa: least band size per class, >= 1. bin_edges: ascending lower edges of the bins of q, the first 0;
    every q its own bin by default. thresholds: (C,) least lower probability per predicted class, each >= 1 - alpha.
    """

    alpha: Decimal
    delta: float
    kappa: int
    bin_edges: tuple[int, ...]
    thresholds: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationPoints:
    """The labelled points of one split (`mc` or `vp`) as a calibration sees them; each (n,).

    label, predicted, match_count (q): int64. distance (d), score (1 - pi^y): float64.
    """

    label: IntArray
    predicted: IntArray
    match_count: IntArray
    distance: FloatArray
    score: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AdmitSets:
    """ADMIT prediction sets of n points, with their evidence from `mc`.

    included: (n, C) bool, the set. band_size: (n, C) int64, n_c. threshold: (n, C) float64, tau_c,
    -inf where the rank exceeds n_c. singleton: (n,) bool. starved: (n,) bool, some n_c < kappa.
    """

    included: BoolArray
    band_size: IntArray
    threshold: FloatArray
    singleton: BoolArray
    starved: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class VennProbabilities:
    """Venn-ADMIT probabilities of the predicted class, of n points; each (n,).

    category_size: int64, |T|, 0 where the set is no singleton. upweight: float64, w: 1 plain, 1 / psi'
    weighted (inf where psi' = 0), NaN where the set is no singleton. lower, upper: float64 in [0, 1], NaN there.
    """

    category_size: IntArray
    upweight: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Admit or reject. decision: (n,) int64, the admitted class or -1.

    reason: (n,) int64, index into `tuple(Reason)`, -1 where admitted.
    """

    decision: IntArray
    reason: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MethodSets:
    """The prediction sets a method of this name gives n points.

    predicted: (n,) int64, its point prediction. included: (n, C) bool, its sets, which hold `predicted`. A set
    that is a singleton admits the prediction.
    """

    name: str
    predicted: IntArray
    included: BoolArray
