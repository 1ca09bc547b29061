"""The comparison methods, on the same data as the procedure (docs/PROCEDURE.md, section 7).

Conf_BASE and both LocalConf use the KNN's softmax; APS and RAPS use the temperature-scaled softmax of the network's
logits. All are calibrated on all held-out labelled data (knn, mc and vp), and the set of each point holds the method's
point prediction: argmax KNN, or argmax f. Without vectors there is no KNN, and APS and RAPS are all there is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.checks import check_lengths
from venn_admit.core.comparison.adaptive import AdaptiveRule, adaptive_sets, label_scores
from venn_admit.core.comparison.adaptive_tuning import TunedRules, tuned_rules, tuning_part
from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.held_out import document_sample
from venn_admit.core.comparison.localized import CorrectedLocal, local_thresholds
from venn_admit.core.comparison.split import conformal_threshold, sets_within
from venn_admit.core.types import Float32Array, FloatArray, IntArray, MethodSets
from venn_admit.errors import InvalidInputError, NotReadyError

LOCAL, CORRECTED = "LocalConf_BASE", "LocalConf corrected"

MOST_WEIGHED = 2**13
"""The corrected form weighs calibration points by each other; of more points than these, a sample calibrates it."""


class OnMethod(Protocol):
    """Is told what is computed from now on."""

    def __call__(self, name: str, points: int | None = None, /) -> object:
        """Be told the name of a method, and how many points it goes through one after the other, if that takes long."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonPoints:
    """What the comparison methods need to know of n points; the arrays may be memory maps.

    Attributes:
        network_logits: (n, C) float32, f.
        knn_logits: (n, C) float64, KNN(x); None if the classifier has logits only.
        vectors: (n, D) float32, r; None for the same reason.
    """

    network_logits: Float32Array
    knn_logits: FloatArray | None
    vectors: Float32Array | None
    draws: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonCalibration:
    """n labelled points to calibrate on; the arrays may be memory maps.

    Attributes:
        nonconformity: (n,) float64 in [0, 1], 1 - pi^y under the KNN; None if the classifier has logits only.
    """

    keys: Sequence[str]
    label: IntArray
    network_logits: Float32Array
    nonconformity: FloatArray | None
    vectors: Float32Array | None
    draws: FloatArray


@dataclass(frozen=True, slots=True)
class ComparisonParameters:
    """The parameters that the methods took from the calibration points.

    Thresholds are inf if there are too few calibration points.

    Attributes:
        temperature: T > 0, fitted once on all points and shared by APS and both RAPS, so that they differ in the
            penalty alone.
        conf_threshold: The threshold of Conf_BASE on the score 1 - pi; None if the classifier has logits only.
        raps: Tuned on about 30 % of the points, with thresholds from the others.
    """

    temperature: float
    conf_threshold: float | None
    aps: AdaptiveRule
    raps: TunedRules


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonMethods:
    """The comparison methods' parameters and sets.

    Attributes:
        sets: The sets of Conf_BASE, RAPS adaptiveness, RAPS size, APS, LocalConf_BASE and LocalConf corrected, in this
            order; the first and the last two rest on vectors.
    """

    parameters: ComparisonParameters
    sets: tuple[MethodSets, ...]


def comparison_methods(
    calibration: ComparisonCalibration,
    points: ComparisonPoints,
    *,
    alpha: Decimal,
    eta_loc: float | None,
    seed: int,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    on_method: OnMethod = lambda *_: None,
    on_points: Callable[[int], object] = lambda _: None,
) -> ComparisonMethods:
    """Return the sets that each comparison method gives some points, and the parameters of the methods.

    The sets of a point do not depend on the other points.

    Args:
        seed: The seed of the cut into a part to tune RAPS on and the rest, and of the sample for LocalConf corrected;
            both keep points of one key together.

    Raises:
        NotReadyError: There are no calibration points.
    """
    _check(calibration, points, eta_loc)
    parameters = _parameters(calibration, alpha, seed)
    predicted = network_prediction(points.network_logits)

    def adaptive(name: str, rule: AdaptiveRule) -> MethodSets:
        on_method(name)
        included = adaptive_sets(points.network_logits, points.draws, parameters.temperature, rule)
        return MethodSets(name, predicted, included)

    of_network = (
        adaptive("RAPS adaptiveness", parameters.raps.adaptiveness),
        adaptive("RAPS size", parameters.raps.size),
        adaptive("APS", parameters.aps),
    )
    if points.knn_logits is None or points.vectors is None or parameters.conf_threshold is None:
        return ComparisonMethods(parameters, of_network)
    assert calibration.vectors is not None, "checked above"
    assert calibration.nonconformity is not None, "checked above"
    assert eta_loc is not None, "checked above"
    on_method(LOCAL, len(points.vectors))
    local = local_thresholds(
        points.vectors,
        calibration.vectors,
        calibration.nonconformity,
        alpha=alpha,
        eta_loc=eta_loc,
        memory_budget=memory_budget,
        on_points=on_points,
    )
    sample = document_sample(calibration.keys, seed=seed, most=MOST_WEIGHED)
    on_method(CORRECTED, len(sample) + len(points.vectors))
    corrected = CorrectedLocal(
        calibration.vectors[sample],
        calibration.nonconformity[sample],
        alpha=alpha,
        eta_loc=eta_loc,
        memory_budget=memory_budget,
        on_points=on_points,
    )
    of_knn = sets_within(points.knn_logits, local)
    return ComparisonMethods(
        parameters,
        (
            MethodSets("Conf_BASE", *sets_within(points.knn_logits, parameters.conf_threshold)),
            *of_network,
            MethodSets(LOCAL, *of_knn),
            MethodSets(CORRECTED, of_knn[0], corrected.sets(points.vectors, points.knn_logits)),
        ),
    )


def _parameters(calibration: ComparisonCalibration, alpha: Decimal, seed: int) -> ComparisonParameters:
    logits, draws, label = calibration.network_logits, calibration.draws, calibration.label
    temperature = fit_temperature(logits, label)
    scores = label_scores(logits, label, draws, temperature)
    tuning = tuning_part(calibration.keys, seed=seed)
    nonconformity = calibration.nonconformity
    return ComparisonParameters(
        temperature=temperature,
        conf_threshold=None if nonconformity is None else conformal_threshold(nonconformity, alpha),
        aps=AdaptiveRule(1, 0.0, conformal_threshold(scores.score(1, 0.0), alpha)),
        raps=tuned_rules(logits, draws, scores, tuning, temperature=temperature, alpha=alpha),
    )


def _check(calibration: ComparisonCalibration, points: ComparisonPoints, eta_loc: float | None) -> None:
    if not len(calibration.label):
        raise NotReadyError("expected labelled held-out points to calibrate on, got none; ingest held-out data")
    if len(calibration.keys) != len(calibration.label):
        raise InvalidInputError(
            f"expected a key for each of {len(calibration.label)} calibration points, got {len(calibration.keys)}; "
            "pass keys and labels of the same points"
        )
    calibrated_by = {"nonconformity": calibration.nonconformity, "vectors": calibration.vectors}
    seen = {"knn_logits": points.knn_logits, "vectors": points.vectors}
    if len({part is None for part in (*calibrated_by.values(), *seen.values(), eta_loc)}) > 1:
        raise InvalidInputError(
            "expected vectors, and what comes of them, of the calibration points and of the others, or none at all; "
            "pass points of the same classifier"
        )
    check_lengths(
        label=calibration.label,
        network_logits=calibration.network_logits,
        draws=calibration.draws,
        **{name: values for name, values in calibrated_by.items() if values is not None},
    )
    check_lengths(
        network_logits=points.network_logits,
        draws=points.draws,
        **{name: values for name, values in seen.items() if values is not None},
    )
    logits = [values for values in (points.network_logits, points.knn_logits) if values is not None]
    if any(values.shape[1:] != calibration.network_logits.shape[1:] for values in logits):
        raise InvalidInputError(
            f"expected logits (n, C) of the same C classes, got shapes {calibration.network_logits.shape} of the "
            f"calibration points, and {' and '.join(str(values.shape) for values in logits)}; "
            "pass logits of the same classifier"
        )
