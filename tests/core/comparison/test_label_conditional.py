"""Sets with a threshold for each class hold the class of a point as often as promised, and not among picked points."""

from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.comparison.label_conditional import class_thresholds, classes_within
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

ALPHA = Decimal("0.1")


def sample(generator: np.random.Generator, count: int) -> tuple[FloatArray, IntArray]:
    """Logits of a network that is often unsure of class 2, and labels."""
    labels = generator.choice(3, size=count, p=[0.6, 0.3, 0.1])
    logits = generator.normal(size=(count, 3))
    logits[np.arange(count), labels] += np.array([3.0, 2.0, 0.5])[labels]
    return logits, labels


def drawn(runs: int) -> tuple[BoolArray, IntArray, BoolArray]:
    """Whether the set of each of many points holds its class, its class, and whether the network was unsure."""
    generator = np.random.default_rng(7)
    held, classes, unsure = [], [], []
    for _ in range(runs):
        thresholds = class_thresholds(*sample(generator, 300), ALPHA)
        logits, labels = sample(generator, 100)
        held.append(classes_within(logits, thresholds)[np.arange(100), labels])
        classes.append(labels)
        exponentials = np.exp(logits)
        unsure.append(exponentials.max(axis=1) / exponentials.sum(axis=1) < 0.7)
    return np.concatenate(held), np.concatenate(classes), np.concatenate(unsure)


def test_each_class_is_held_as_often_as_promised_and_less_often_where_the_network_is_unsure() -> None:
    held, classes, unsure = drawn(400)
    for number in range(3):
        own = held[classes == number]
        # Three standard errors of means over runs, each of which draws thresholds of its own: .0055 at most.
        assert own.mean() >= 0.9 - 3 * 0.0055
    # Among points that were picked for their logits it is no promise.
    assert held[unsure & (classes == 0)].mean() == pytest.approx(0.39, abs=0.02)


def test_thresholds_are_those_of_a_loop() -> None:
    logits, labels = sample(np.random.default_rng(3), 60)
    exponentials = np.exp(logits)
    pi = exponentials / exponentials.sum(axis=1, keepdims=True)
    for number, found in enumerate(class_thresholds(logits, labels, ALPHA)):
        scores = sorted(1 - pi[labels == number, number])
        rank = int(np.ceil((len(scores) + 1) * 0.9 - 1e-9))
        assert found == pytest.approx(scores[rank - 1] if rank <= len(scores) else np.inf)


def test_alpha_is_checked() -> None:
    with pytest.raises(InvalidInputError, match="alpha must lie strictly between 0 and 1"):
        class_thresholds(np.zeros((1, 2)), np.array([0]), Decimal(1))
