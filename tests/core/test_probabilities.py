"""What looks like probabilities, and the logits that probabilities stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from venn_admit.core.probabilities import FLOOR, are_probabilities, logs, not_probabilities
from venn_admit.core.types import FloatArray

any_logits = arrays(np.float64, (7, 5), elements=st.floats(-30, 30))


def softmax(logits: FloatArray, kind: type = np.float64) -> FloatArray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True)).astype(kind)
    found: FloatArray = raised / raised.sum(axis=1, keepdims=True, dtype=kind)
    return found


@given(any_logits)
def test_a_softmax_is_recognised_in_float32(logits: FloatArray) -> None:
    for kind in (np.float32, np.float64):
        assert are_probabilities(softmax(logits, kind))
    assert not not_probabilities(softmax(logits, np.float16)).size


@given(any_logits)
def test_logarithms_give_the_probabilities_back(logits: FloatArray) -> None:
    probabilities = softmax(logits)
    assert softmax(logs(probabilities)) == pytest.approx(probabilities, abs=1e-12)


def to_bfloat16(values: FloatArray) -> FloatArray:
    """The nearest numbers that bfloat16 can hold, as float32 has them."""
    bits = (values.astype(np.float32).view(np.uint32) + 0x8000) & np.uint32(0xFFFF0000)
    found: FloatArray = bits.view(np.float32)
    return found


@pytest.mark.parametrize("class_count", [2, 3, 10, 100])
def test_a_softmax_in_half_precision_is_recognised_by_several_rows(class_count: int) -> None:
    logits = 3 * np.random.default_rng(class_count).normal(size=(400, class_count))
    exact = softmax(logits)
    for rounded in (softmax(logits, np.float16), exact.astype(np.float16), to_bfloat16(exact), exact.round(4)):
        assert are_probabilities(rounded)
        assert not not_probabilities(rounded).size
    near = np.array([[0.4, 0.601]])
    assert not are_probabilities(near), "a single row of logits may sum to about 1"
    assert are_probabilities(np.repeat(near, 8, axis=0))


def test_a_softmax_of_many_classes_is_recognised() -> None:
    logits = np.random.default_rng(0).normal(size=(100, 50_000))
    assert are_probabilities(softmax(logits, np.float32))


@pytest.mark.parametrize(
    "logits",
    [
        [[0.5, 0.5], [0.5, 0.6]],
        [[0.5, 0.5], [1.5, -0.5]],
        [[2.5, -1.5]],
        [[0.2, 0.3]],
        [[0.0, 0.0]],
    ],
)
def test_one_row_that_is_none_tells_logits(logits: list[list[float]]) -> None:
    assert not are_probabilities(np.array(logits))


def test_the_logarithm_of_zero_is_that_of_the_least_float32() -> None:
    found = logs(np.array([[1.0, 0.0], [1 - 1e-40, 1e-40]])).astype(np.float32)
    assert np.isfinite(found).all()
    assert found[:, 1].tolist() == [np.float32(np.log(FLOOR))] * 2
    assert np.float32(2.0**-126) == FLOOR


def test_rows_that_are_none_are_named() -> None:
    assert not_probabilities(np.array([[0.333, 0.333, 0.334], [0.9, 0.2, 0.0], [1.5, -0.5, 0.0]])).tolist() == [1, 2]
