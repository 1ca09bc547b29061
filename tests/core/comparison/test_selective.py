"""The methods that admit the network's prediction, against scikit-learn and scipy, and what must not matter to them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.special import softmax as scipy_softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.core.comparison.selective import (
    CERTIFIED,
    GUARANTEED,
    SOFTMAX,
    Promise,
    SelectiveMethods,
    selective_methods,
)
from venn_admit.core.types import Approximation, BoolArray, FloatArray, IntArray, SelectiveMethod

K, C = 10, 3
PROMISE = Promise(alpha=Decimal("0.1"), thresholds=(Decimal("0.9"),) * C)
VENN_ABERS = ("Venn-Abers network", "Venn-Abers reliability")


def drawn(count: int, rng: np.random.Generator, documents: int | None = None, sharpness: float = 2.0) -> HeldOutPoints:
    """Points of a network that is overconfident by a factor, and of a KNN that knows less."""
    label = rng.integers(0, C, count)
    truth = sharpness * (label[:, None] == np.arange(C)) + rng.normal(size=(count, C))
    logits = (3 * truth).astype(np.float32)
    knn = truth + rng.normal(size=(count, C))
    view = Approximation(
        logits=knn,
        predicted=knn.argmax(axis=1),
        match_count=rng.binomial(K, scipy_softmax(knn, axis=1).max(axis=1)),
        distance=rng.random(count) + 0.5,
    )
    keys = [f"{number % documents if documents else number}" for number in range(count)]
    return HeldOutPoints(keys, label, ViewedPoints(logits, view))


def shuffled(points: HeldOutPoints, order: IntArray) -> HeldOutPoints:
    seen = ViewedPoints(points.seen.network_logits[order], points.seen.knn.take(order))
    return HeldOutPoints([points.keys[row] for row in order], points.label[order], seen)


@pytest.fixture(scope="module")
def held_out() -> HeldOut:
    rng = np.random.default_rng(5)
    return HeldOut(drawn(600, rng), drawn(1500, rng), drawn(1500, rng))


@pytest.fixture(scope="module")
def points() -> HeldOutPoints:
    return drawn(700, np.random.default_rng(6))


def run(held_out: HeldOut, points: ViewedPoints, temperature: float = 3.0) -> SelectiveMethods:
    return selective_methods(held_out, points, PROMISE, temperature=temperature, neighbour_count=K, seed=1)


def named(found: SelectiveMethods, name: str) -> SelectiveMethod:
    return next(method for method in found.methods if method.name == name)


def slow_p0(score: FloatArray, right: BoolArray, at: float) -> float:
    """scikit-learn's isotonic regression with the point added as wrong."""
    scores, outcomes = np.append(score, at), np.append(right, False)
    return float(IsotonicRegression(y_min=0, y_max=1).fit(scores, outcomes).predict([at])[0])


def slow_features(seen: ViewedPoints, median: float) -> FloatArray:
    logits, view = seen.network_logits.astype(np.float64), seen.knn
    p, pi = scipy_softmax(logits, axis=1), scipy_softmax(view.logits, axis=1)
    predicted, rows = logits.argmax(axis=1), np.arange(len(logits))
    agrees = view.predicted == predicted
    q = np.where(agrees, view.match_count, 0)

    def logit(u: FloatArray) -> FloatArray:
        clipped = np.clip(u, 1e-12, 1 - 1e-12)
        return np.asarray(np.log(clipped) - np.log(1 - clipped))

    top = np.sort(p, axis=1)
    columns: Sequence[Any] = (
        logit(p[rows, predicted]),
        top[:, -1] - top[:, -2],
        logit(pi[rows, predicted]),
        agrees,
        q / K,
        q == 0,
        q == K,
        np.log(1 + view.distance / median),
    )
    return np.column_stack(columns)


def slow_reliability(knn: HeldOutPoints, seen: ViewedPoints) -> FloatArray:
    """scikit-learn's logistic regression, one for each predicted class."""
    median = float(np.median(knn.seen.knn.distance))
    known, wanted = slow_features(knn.seen, median), slow_features(seen, median)
    said, asked = knn.seen.network_logits.argmax(axis=1), seen.network_logits.argmax(axis=1)
    score = np.empty(len(wanted))
    for c in range(C):
        of_class, right = known[said == c], (knn.label == said)[said == c]
        mean, sd = of_class.mean(axis=0), of_class.std(axis=0)
        sd[sd == 0] = 1
        model = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit((of_class - mean) / sd, right)
        score[asked == c] = model.predict_proba((wanted[asked == c] - mean) / sd)[:, 1]
    return score


def test_softmax_agrees_with_scipy(held_out: HeldOut, points: HeldOutPoints) -> None:
    everything = np.concatenate([part.seen.network_logits for part in (held_out.knn, held_out.mc, held_out.vp)])
    label = np.concatenate([part.label for part in (held_out.knn, held_out.mc, held_out.vp)])

    def loss(log_temperature: float) -> float:
        logits = everything.astype(np.float64) / np.exp(log_temperature)
        return -float(log_softmax(logits, axis=1)[np.arange(len(label)), label].sum())

    temperature = float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))
    expected = scipy_softmax(points.seen.network_logits.astype(np.float64) / temperature, axis=1).max(axis=1)
    found = named(run(held_out, points.seen, fit_temperature(everything, label)), SOFTMAX)
    assert found.confidence is not None
    np.testing.assert_allclose(found.confidence, expected, atol=1e-5)
    clear = np.abs(expected - 0.9) > 1e-4
    np.testing.assert_array_equal(found.admitted[clear], expected[clear] >= 0.9)
    assert 0.2 < found.admitted.mean() < 0.8


def test_venn_abers_agrees_with_scikit_learn(held_out: HeldOut, points: HeldOutPoints) -> None:
    found, rows = run(held_out, points.seen), np.arange(0, 700, 7)
    predicted, mc = points.seen.network_logits.argmax(axis=1), held_out.mc
    said = mc.seen.network_logits.argmax(axis=1)
    scores = {
        "Venn-Abers network": (
            scipy_softmax(mc.seen.network_logits.astype(np.float64), axis=1).max(axis=1),
            scipy_softmax(points.seen.network_logits.astype(np.float64), axis=1).max(axis=1),
        ),
        "Venn-Abers reliability": (
            slow_reliability(held_out.knn, mc.seen),
            slow_reliability(held_out.knn, points.seen),
        ),
    }
    for name, (known, wanted) in scores.items():
        method = named(found, name)
        assert method.confidence is not None
        expected = np.array(
            [
                slow_p0(known[said == predicted[row]], (mc.label == said)[said == predicted[row]], wanted[row])
                for row in rows
            ]
        )
        # Fits that end elsewhere by rounding may order two nearly equal scores differently.
        differ = np.abs(method.confidence[rows] - expected) > 1e-6
        assert differ.sum() <= (0 if name == "Venn-Abers network" else 2), name
        np.testing.assert_array_equal(method.admitted, method.confidence >= 0.9)
        assert method.admitted.any()


def test_methods_hold_what_they_promise_on_points_like_these(held_out: HeldOut) -> None:
    many = drawn(20_000, np.random.default_rng(7))
    found = run(held_out, many.seen)
    right = many.right
    for name in (GUARANTEED, CERTIFIED, *VENN_ABERS):
        admitted = named(found, name).admitted
        assert admitted.mean() > 0.1, name
        assert right[admitted].mean() > 0.9, name
    certified = named(found, CERTIFIED)
    for c in range(C):
        for classes in (certified.predicted, many.label):
            assert right[certified.admitted & (classes == c)].mean() > 0.9


def test_neither_order_nor_batch_changes_a_bit(held_out: HeldOut, points: HeldOutPoints) -> None:
    rng = np.random.default_rng(8)
    other = HeldOut(
        *(shuffled(part, rng.permutation(len(part.label))) for part in (held_out.knn, held_out.mc, held_out.vp))
    )
    order = rng.permutation(700)[:300]
    some = run(other, shuffled(points, order).seen)
    whole = run(held_out, points.seen)
    assert some.parameters == whole.parameters
    for one, all_of_it in zip(some.methods, whole.methods, strict=True):
        np.testing.assert_array_equal(one.admitted, all_of_it.admitted[order])
        assert (one.confidence is None) == (all_of_it.confidence is None)
        if one.confidence is not None and all_of_it.confidence is not None:
            np.testing.assert_array_equal(one.confidence, all_of_it.confidence[order])


def test_too_few_held_out_points_to_promise_anything(points: HeldOutPoints) -> None:
    rng = np.random.default_rng(9)
    found = run(HeldOut(drawn(0, rng), drawn(5, rng), drawn(5, rng)), points.seen)
    assert [named(found, name).admitted.sum() for name in (GUARANTEED, CERTIFIED, *VENN_ABERS)] == [0, 0, 0, 0]
    words = dict(found.parameters)
    assert "no threshold passed" in words[GUARANTEED]
    assert "not certified: under two documents" in words[CERTIFIED]


def test_one_document_is_too_few_for_a_certificate(held_out: HeldOut, points: HeldOutPoints) -> None:
    one = drawn(1500, np.random.default_rng(10), documents=1)
    found = run(HeldOut(held_out.knn, one, drawn(0, np.random.default_rng(11))), points.seen)
    assert not named(found, CERTIFIED).admitted.any()
    assert "under two documents" in dict(found.parameters)[CERTIFIED]
