"""Simulated: a promise for a class is about a mix of partitions, and need not survive another mix of them.

Predictions of a class lie in two partitions, such as q = K and q < K, that are right with .96 and .82 whatever the mix
is. In calibration 70 in 100 lie in the better one, so that .918 of all are right; in traffic that drifted, 30 in 100
do, and .862 are. What is decided inside each partition only depends on the accuracies, which stay as they are.
"""

from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.types import BoolArray, FloatArray, IntArray

TARGET = 0.9
RIGHT = np.array([0.96, 0.82])
CALIBRATED, DRIFTED = np.array([0.7, 0.3]), np.array([0.3, 0.7])
DRAWS, SIZE = 200, 4000


def draw(rng: np.random.Generator, count: int) -> tuple[IntArray, BoolArray]:
    """The partition of each point, and whether it is right."""
    partition = (rng.random(count) < CALIBRATED[1]).astype(np.int64)
    return partition, rng.random(count) < RIGHT[partition]


def share_right(admitted: BoolArray, mix: FloatArray) -> float:
    """The share right if some partitions are admitted; admitted: (2,)."""
    return float((RIGHT * mix)[admitted].sum() / mix[admitted].sum())


def certified(rng: np.random.Generator) -> bool:
    """Whether a certificate for the predicted class admits it, by a score that says nothing of the partition."""

    def drawn(count: int) -> CertificatePoints:
        _, right = draw(rng, count)
        zeros = np.zeros(count, dtype=np.int64)
        return CertificatePoints(np.full(count, 0.9), zeros, (~right).astype(np.int64), np.arange(count))

    kinds = (ClassKind.PREDICTED,)
    return certify(drawn(SIZE // 10), drawn(SIZE), class_count=2, alpha=Decimal("0.1"), kinds=kinds).policy is not None


def admitted_by_cell(rng: np.random.Generator, q_bins: tuple[int, ...]) -> BoolArray:
    """The partitions that Venn-Abers admits pointwise, (2,); q of a point is the number of its partition."""
    partition, right = draw(rng, SIZE)

    def points(match_count: IntArray) -> CellPoints:
        return CellPoints(np.zeros_like(match_count), match_count, np.full(len(match_count), 0.9))

    index = VennAbersIndex(points(partition), right, class_count=1, q_bins=q_bins)
    admitted: BoolArray = index.bounds(points(np.arange(2))).lower >= TARGET
    return admitted


def test_the_mix_alone_takes_a_class_below_its_target() -> None:
    both = np.ones(2, dtype=np.bool_)
    assert share_right(both, CALIBRATED) == pytest.approx(0.918)
    assert share_right(both, DRIFTED) == pytest.approx(0.862)


def test_a_certificate_for_a_class_pools_its_partitions() -> None:
    assert np.mean([certified(np.random.default_rng(seed)) for seed in range(50)]) > 0.9


def test_pooled_cells_admit_both_partitions_and_cells_of_partitions_the_better_one() -> None:
    pooled = np.array([admitted_by_cell(np.random.default_rng(seed), (0,)) for seed in range(DRAWS)])
    apart = np.array([admitted_by_cell(np.random.default_rng(seed), (0, 1)) for seed in range(DRAWS)])
    assert pooled.all(axis=1).mean() > 0.99
    assert (apart == [True, False]).all()
    assert share_right(apart[0], DRIFTED) == share_right(apart[0], CALIBRATED) == pytest.approx(0.96)
