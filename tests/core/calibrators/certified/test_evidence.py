"""How many documents a class needs."""

import math

import numpy as np
import pytest

from venn_admit.core.calibrators.certified.evidence import POWER, Evidence, documents_needed
from venn_admit.core.calibrators.certified.hypothesis_tests import betting_p_values, boundary_deviation
from venn_admit.core.calibrators.certified.losses import LossRanges
from venn_admit.core.types import FloatArray

LEVEL, ALPHA = 0.05, 0.1


@pytest.mark.parametrize(("size", "dependence"), [(1, 0.0), (4, 0.3), (8, 0.7)])
def test_with_the_documents_needed_a_class_passes_about_as_often_as_meant(size: int, dependence: float) -> None:
    rng = np.random.default_rng(size)

    def differences(documents: int, repetitions: int) -> FloatArray:
        shared = rng.random((documents, repetitions)) < 0.06
        wrong = np.zeros((documents, repetitions))
        for _ in range(size):
            own = rng.random((documents, repetitions)) < 0.06
            wrong += np.where(rng.random((documents, repetitions)) < dependence, shared, own)
        return wrong - ALPHA * size

    large = differences(100_000, 1)
    bound = (1 - ALPHA) * size
    wrong = np.rint(large + ALPHA * size).astype(np.int64)
    boundary = float(boundary_deviation(large, np.full_like(wrong, size), LossRanges(np.ones(1), np.ones(1)), ALPHA)[0])
    needed = documents_needed(float(-large.mean()), float(large.std()), boundary, bound, level=LEVEL, bounded=True)
    assert needed is not None
    p_values = betting_p_values(
        differences(needed, 1000),
        np.full(1000, bound),
        differences(needed, 1000),
        level=LEVEL,
        uniform=1 - rng.random(1000),
    )
    assert (p_values <= LEVEL).mean() == pytest.approx(POWER, abs=0.15)


def test_more_documents_do_not_help_a_class_that_falls_short() -> None:
    assert documents_needed(0.0, 1.0, 1.0, 1.0, level=LEVEL, bounded=True) is None


def test_a_large_document_that_could_be_wrong_asks_for_more() -> None:
    plain = documents_needed(0.1, 0.1, 0.1, 50.0, level=LEVEL, bounded=False)
    allowing = documents_needed(0.1, 0.1, 0.1, 50.0, level=LEVEL, bounded=True)
    assert plain == 7
    assert allowing == math.ceil(50 * math.log(20) / 0.1)


def test_what_is_reserved_is_expected_to_pass_by_as_much() -> None:
    deviation, bound = np.array([0.3, 2.0, 0.1]), np.array([0.9, 0.9, 20.0])
    for evidence in (Evidence(400, 800, bounded=True), Evidence(400, 800, bounded=False)):
        gain = evidence.reserve(2.5, deviation, bound)
        assert evidence.expected(gain, deviation, bound) == pytest.approx(2.5)


def test_nothing_admitted_and_nothing_gained_promise_nothing() -> None:
    expected = Evidence(400, 800, bounded=True).expected(
        np.array([0.0, -0.1]), np.array([0.0, 0.5]), np.array([1.0, 1.0])
    )
    assert expected[0] == 0
    assert expected[1] < 0
