"""APS, RAPS and Conf_BASE against MAPIE 1.6, an independent library, on the golden data, to the set in every entry.

What coincides, and is compared:

- the score of the true label, MAPIE's u being our 1 - U: it takes u p_(r) from the sum up to and including rank r,
  where we add U p_(r) to the sum before it. RAPS adds lambda max(r - k_reg, 0), r from 1, in both.
- the threshold: the ceil((n + 1)(1 - alpha))-th smallest score.
- sets with `include_last_label="randomized"`: the last rank in question is that whose sum reaches the threshold
  first, kept if its own randomised score is within it; that is our rule.
- sets with `include_last_label=False`: ranks whose sum is within the threshold, which is our rule for U -> 1.

What does not, and is left out or made alike:

- MAPIE's randomised sets may be empty. Ours hold the prediction, so it is added to MAPIE's.
- With a penalty, MAPIE divides by p_(r) - lambda (max(r - k_reg, 0) - [r > k_reg]) to decide on the last rank r. That
  is p_(r), and so our rule, only up to r = k_reg + 1. Beyond it only that one class may differ.
- MAPIE tunes k_reg and lambda by other rules (in its search for lambda the sets are built with k_reg = lambda), so
  both are given here, in place of its search; it still sets a part of the data apart, as it would to search on.
- Both draw the calibration's u and the points' u from one seed; MAPIE so draws the same numbers twice.
- MAPIE takes no two classes for APS and RAPS: those data get a third one of probability 0, which ten points have.
- MAPIE compares with a tolerance of 1e-8, and ranks ties the other way round; the data have neither.
"""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mapie.classification import SplitConformalClassifier
from mapie.conformity_scores import APSConformityScore, LACConformityScore, RAPSConformityScore
from sklearn.base import BaseEstimator, ClassifierMixin

from venn_admit.core.approximation.knn import network_prediction, nonconformity, softmax
from venn_admit.core.comparison.adaptive import AdaptiveRule, adaptive_sets, label_scores
from venn_admit.core.comparison.split import conformal_threshold, sets_within
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray

GOLDEN = Path(__file__).parents[1] / "golden" / "baselines.npz"
SEED = 7


@dataclass(frozen=True)
class Case:
    """Labelled points and points to predict, with their temperature."""

    logits: Float32Array
    label: IntArray
    scored: Float32Array
    temperature: float

    @property
    def probabilities(self) -> FloatArray:
        """The softmax of all points, the labelled ones first."""
        return softmax(np.concatenate([self.logits, self.scored]) / np.float64(self.temperature))

    @property
    def predicted(self) -> tuple[IntArray, IntArray]:
        """Index of the prediction of each scored point."""
        return np.arange(len(self.scored)), network_prediction(self.scored)


class GivenProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # without types
    """A fitted classifier whose inputs are row numbers of a table of probabilities."""

    def __init__(self, probabilities: FloatArray) -> None:
        self.probabilities = probabilities
        self.classes_ = np.arange(probabilities.shape[1])
        self.n_features_in_ = 1
        self.asked: list[IntArray] = []

    def fit(self, *_: object) -> "GivenProbabilities":
        raise AssertionError("fitted already")

    def predict_proba(self, rows: npt.NDArray[Any]) -> FloatArray:
        self.asked.append(rows[:, 0].astype(np.int64))  # MAPIE tries it on a float
        return self.probabilities[self.asked[-1]]

    def predict(self, rows: npt.NDArray[Any]) -> IntArray:
        predicted: IntArray = self.predict_proba(rows).argmax(axis=1)
        return predicted


class GivenPenalty(RAPSConformityScore):  # type: ignore[misc] # without types
    """MAPIE's RAPS with k_reg and lambda given."""

    def __init__(self, k_reg: int, penalty: float) -> None:
        super().__init__()
        self.given = k_reg, penalty

    def _find_lambda_star(self, *_: object) -> float:
        k_reg, penalty = self.given
        self.k_star = np.array([k_reg])
        return penalty


@pytest.fixture(scope="module", params=["two", "ten"])
def case(request: pytest.FixtureRequest) -> Case:
    with np.load(GOLDEN) as golden:
        logits, label, scored, temperature = (
            golden[f"{request.param}_{name}"] for name in ("f_cal", "y_cal", "f", "temperature")
        )
    if request.param == "two":
        impossible = np.float32(-1e4)
        logits, scored = (np.insert(given, 2, impossible, axis=1) for given in (logits, scored))
        label[:10] = 2
    return Case(logits, label, scored, float(temperature))


def conformalized(case: Case, score: Any, alpha: Decimal) -> tuple[Any, IntArray]:
    """MAPIE, and the labelled points it calibrated on, in its order."""
    estimator = GivenProbabilities(case.probabilities)
    classifier = SplitConformalClassifier(
        estimator, confidence_level=float(1 - alpha), conformity_score=score, prefit=True, random_state=SEED
    )
    classifier.conformalize(np.arange(len(case.label))[:, np.newaxis], case.label)
    count = len(classifier.conformity_scores)
    return classifier, next(rows for rows in estimator.asked if len(rows) == count)


def library_sets(classifier: Any, case: Case, include_last_label: bool | str) -> BoolArray:
    """MAPIE's sets of the scored points, (n, C)."""
    rows = len(case.label) + np.arange(len(case.scored))[:, np.newaxis]
    _, included = classifier.predict_set(rows, conformity_score_params={"include_last_label": include_last_label})
    return np.array(included[:, :, 0], dtype=np.bool_)


def library_draws(count: int) -> FloatArray:
    """Our draws that answer to MAPIE's of this seed."""
    return 1.0 - np.random.RandomState(SEED).uniform(size=count)  # what MAPIE draws from


def with_prediction(included: BoolArray, case: Case) -> BoolArray:
    included = included.copy()
    included[case.predicted] = True
    return included


@pytest.mark.parametrize("alpha", [Decimal("0.1"), Decimal("0.03"), Decimal("0.25")])
def test_aps(case: Case, alpha: Decimal) -> None:
    classifier, rows = conformalized(case, APSConformityScore(), alpha)
    np.testing.assert_array_equal(rows, np.arange(len(case.label)))
    scores = label_scores(case.logits, case.label, library_draws(len(case.label)), case.temperature)
    np.testing.assert_allclose(classifier.conformity_scores[:, 0], scores.unpenalised, rtol=0, atol=1e-12)

    rule = AdaptiveRule(1, 0.0, conformal_threshold(scores.unpenalised, alpha))
    found = adaptive_sets(case.scored, library_draws(len(case.scored)), case.temperature, rule)
    expected = library_sets(classifier, case, "randomized")
    assert rule.threshold == pytest.approx(quantile(classifier), abs=1e-12)
    np.testing.assert_array_equal(found, with_prediction(expected, case))
    assert len(np.unique(found.sum(axis=1))) > 1


@pytest.mark.parametrize("alpha", [Decimal("0.1"), Decimal("0.03")])
@pytest.mark.parametrize(("k_reg", "penalty"), [(1, 0.2), (2, 0.01), (1, 0.001), (3, 0.05), (3, 0.0)])
def test_raps(case: Case, k_reg: int, penalty: float, alpha: Decimal) -> None:
    classifier, rows = conformalized(case, GivenPenalty(k_reg, penalty), alpha)
    label, draws = case.label[rows], library_draws(len(rows))
    scores = label_scores(case.logits[rows], label, draws, case.temperature)
    threshold = conformal_threshold(scores.score(k_reg, penalty), alpha)
    rule = AdaptiveRule(k_reg, penalty, threshold)

    found = adaptive_sets(case.scored, library_draws(len(case.scored)), case.temperature, rule)
    expected = with_prediction(library_sets(classifier, case, "randomized"), case)
    assert threshold == pytest.approx(quantile(classifier), abs=1e-12)
    last_rank = library_sets(classifier, case, include_last_label=True).sum(axis=1)
    alike = (last_rank <= k_reg + 1) | (penalty == 0)
    np.testing.assert_array_equal(found[alike], expected[alike])
    of_last_rank = np.argsort(-case.scored, axis=1)[np.arange(len(last_rank)), last_rank - 1]
    found[np.arange(len(found)), of_last_rank] = expected[np.arange(len(found)), of_last_rank]
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(expected.sum(axis=1))) > 1

    nearly_one = np.full(len(case.scored), np.nextafter(1.0, 0.0))
    found = adaptive_sets(case.scored, nearly_one, case.temperature, rule)
    np.testing.assert_array_equal(found, library_sets(classifier, case, include_last_label=False))


@pytest.mark.parametrize("alpha", [Decimal("0.1"), Decimal("0.03")])
def test_conf_base(case: Case, alpha: Decimal) -> None:
    """On the score 1 - pi (MAPIE's LAC), here of the network's logits."""
    classifier, _ = conformalized(case, LACConformityScore(), alpha)
    logits = np.concatenate([case.logits, case.scored]) / np.float64(case.temperature)
    threshold = conformal_threshold(nonconformity(logits[: len(case.label)], case.label), alpha)
    _, found = sets_within(logits[len(case.label) :], threshold)
    np.testing.assert_array_equal(found, with_prediction(library_sets(classifier, case, True), case))
    assert threshold == pytest.approx(quantile(classifier), abs=1e-12)


def quantile(classifier: Any) -> float:
    """The threshold behind the sets that MAPIE gave last; it has no public name in MAPIE 1.6."""
    found: npt.NDArray[np.float64] = classifier._mapie_classifier.quantiles_
    return found.item()
