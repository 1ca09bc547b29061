"""The corrected form of localized conformal prediction, by its definition, and the coverage of both forms."""

from decimal import Decimal
from fractions import Fraction
from math import ceil, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.approximation.knn import nonconformity, softmax
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.comparison.localized import CorrectedLocal, local_thresholds
from venn_admit.core.comparison.split import sets_within
from venn_admit.core.types import BoolArray, Float32Array, FloatArray
from venn_admit.errors import NotReadyError

GOLDEN = Path(__file__).parents[2] / "golden"
ALPHA = Decimal("0.1")


def quantile(values: list[float], weights: list[float], level: float) -> float:
    """The least value at which the share of the weights of the values up to it is more than the level."""
    total = sum(weights)
    for value in sorted(values):
        if sum(weight for one, weight in zip(values, weights, strict=True) if one <= value) / total > level + 1e-13:
            return value
    return float("inf")


def is_in(value: float, query: FloatArray, support: FloatArray, score: list[float], alpha: Decimal, eta: float) -> bool:
    """Guan's definition, in plain loops: the least level at which enough points are within their own quantile.

    Levels are tried just above each share that a quantile can have below a point, which is where anything changes.
    """
    points = [*support, query]
    scores = [*score, value]
    count = len(points)
    weights = [[float(np.exp(-np.linalg.norm(a - b) / eta)) for b in points] for a in points]
    needed = ceil(Fraction(count) * (1 - Fraction(alpha)))
    levels = sorted(
        sum(w for w, v in zip(weights[i], scores, strict=True) if v < scores[i]) / sum(weights[i]) for i in range(count)
    )
    for level in levels:
        if sum(scores[i] <= quantile(scores, weights[i], level) for i in range(count)) >= needed:
            return value <= quantile([*score, float("inf")], weights[-1], level)
    raise AssertionError("the highest level takes all points in")


@pytest.mark.parametrize("alpha", ["0.1", "0.25"])
@pytest.mark.parametrize("eta", [0.3, 0.7, 3.0])
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 14))
@settings(max_examples=12, deadline=None)
def test_sets_match_the_definition(alpha: str, eta: float, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    support = rng.integers(-2, 3, (count, 2)).astype(np.float32)  # equal points, and equal scores
    queries = rng.integers(-2, 3, (3, 2)).astype(np.float32)
    logits = rng.integers(-2, 3, (3, 3)).astype(np.float64)
    shares = softmax(logits)
    score = np.concatenate([1 - shares.ravel(), rng.integers(0, 6, count) / 5])[-count:]
    found = CorrectedLocal(support, score, alpha=Decimal(alpha), eta_loc=eta).sets(queries, logits)
    for row in range(3):
        for known in range(3):
            expected = known == logits[row].argmax() or is_in(
                1 - shares[row, known],
                queries[row].astype(np.float64),
                support.astype(np.float64),
                score.tolist(),
                Decimal(alpha),
                eta,
            )
            assert found[row, known] == expected


def real_sets(
    rows: slice, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> tuple[BoolArray, Float32Array, FloatArray, FloatArray]:
    """The sets of golden rows, calibrated on 600 of vp, with the vectors and scores that they were calibrated on."""
    with np.load(GOLDEN / "sentiment.npz") as golden:
        support = golden["vp_r"][:600].astype(np.float32)
        score = nonconformity(golden["vp_logits"][:600], golden["vp_y"][:600].astype(np.int64))
        corrected = CorrectedLocal(support, score, alpha=ALPHA, eta_loc=0.6, memory_budget=memory_budget)
        logits = golden["score_logits"][rows]
        return corrected.sets(golden["score_r"][rows].astype(np.float32), logits), support, score, logits


def test_real_sets_match_a_loop() -> None:
    found, support, score, logits = real_sets(slice(40))
    with np.load(GOLDEN / "sentiment.npz") as golden:
        queries = golden["score_r"][:40].astype(np.float64)
    between = np.array([np.linalg.norm(support.astype(np.float64) - one, axis=1) for one in support.astype(np.float64)])
    weight = np.exp(-between / 0.6)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    singles = 0
    for row, query in enumerate(queries):
        to_query = np.exp(-np.linalg.norm(support - query, axis=1) / 0.6)
        for known in range(2):
            value = 1 - shares[row, known]
            theirs = [
                ((weight[i] * (score < score[i])).sum() + to_query[i] * (value < score[i]))
                / (weight[i].sum() + to_query[i])
                for i in range(600)
            ]
            own = (to_query * (score < value)).sum() / (to_query.sum() + 1)
            expected = known == logits[row].argmax() or (np.array(theirs) < own).sum() < 541  # ceil(.9 * 601)
            assert found[row, known] == expected
        singles += found[row].sum() == 1
    assert 10 < singles < 40, "otherwise nothing was seen"


def test_sets_do_not_depend_on_the_batch() -> None:
    expected, *_ = real_sets(slice(100))
    for rows in (slice(7, 8), slice(50, 100)):
        np.testing.assert_array_equal(real_sets(rows, memory_budget=1)[0], expected[rows])


def test_no_calibration_points() -> None:
    with pytest.raises(NotReadyError, match="ingest held-out data"):
        CorrectedLocal(np.zeros((0, 2), np.float32), np.zeros(0), alpha=ALPHA, eta_loc=1.0)


def test_far_points_have_all_classes() -> None:
    """Their weights are 0, and nothing is known of them."""
    support, score = np.zeros((50, 1), np.float32), np.linspace(0, 0.4, 50)
    corrected = CorrectedLocal(support, score, alpha=ALPHA, eta_loc=1e-3)
    logits = np.array([[3.0, 0.0, -3.0]])
    assert corrected.sets(np.array([[1e6]], np.float32), logits).all()
    assert corrected.sets(np.array([[0.0]], np.float32), logits).tolist() == [[True, False, False]]


def covered(count: int, eta: float, draws: int) -> tuple[float, float]:
    """How often the label is in the set of the base form and of the corrected one, a new point a calibration.

    Points are uniform in [0, 1], in two classes; the share right of the prediction falls from 1 to .6.
    """
    base = corrected = 0
    for draw in range(draws):
        rng = np.random.default_rng([count, draw])
        place = rng.random(count + 1)
        logits = np.stack([np.zeros(count + 1), rng.normal(0, 2, count + 1)], axis=1)
        label = np.where(rng.random(count + 1) < 1 - 0.4 * place, logits.argmax(axis=1), logits.argmin(axis=1))
        vectors = place[:, np.newaxis].astype(np.float32)
        support, score = vectors[:-1], nonconformity(logits, label)[:-1]
        threshold = local_thresholds(vectors[-1:], support, score, alpha=ALPHA, eta_loc=eta)
        base += int(sets_within(logits[-1:], threshold)[1][0, label[-1]])
        sets = CorrectedLocal(support, score, alpha=ALPHA, eta_loc=eta).sets(vectors[-1:], logits[-1:])
        corrected += int(sets[0, label[-1]])
    return base / draws, corrected / draws


@pytest.mark.parametrize(("count", "eta", "base"), [(50, 0.01, 0.857), (200, 0.003, 0.844)])
def test_the_corrected_form_covers_and_the_base_form_does_not(count: int, eta: float, base: float) -> None:
    draws = 1000
    of_base, of_corrected = covered(count, eta, draws)
    error = sqrt(0.09 / draws)
    assert of_base == pytest.approx(base, abs=3 * error)
    assert of_base < 0.9 - 3 * error
    assert of_corrected >= 0.9 - 3 * error
