"""The certificate of Venn-Abers: p0 of mc from the other folds, p0 of vp from all of mc, whatever the order."""

from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import LabelledCells, certify_cells, fold_of
from venn_admit.core.documents import document_codes
from venn_admit.core.types import FloatArray, IntArray

CLASSES, SEED = 2, 7
SETTINGS = make_venn_abers_settings(CLASSES, 5, q_bins=(0, 3), certify=["predicted", "true"], confidence=Decimal("0.9"))


def split(name: str, documents: int, *, seed: int, size: int = 1) -> LabelledCells:
    rng = np.random.default_rng(seed)
    n = documents * size
    score = np.round(0.5 + rng.beta(4, 1, n) / 2, 2)
    predicted = rng.integers(CLASSES, size=n)
    label = np.where(rng.random(n) < score, predicted, 1 - predicted)
    keys = [f"{name}-{row // size}" for row in range(n)]
    return LabelledCells(CellPoints(predicted, rng.integers(0, 6, n), score), label, keys)


def certificate(mc: LabelledCells, vp: LabelledCells) -> Certificate:
    assert SETTINGS.certification is not None
    index = VennAbersIndex(mc.points, mc.points.predicted == mc.label, class_count=CLASSES, q_bins=SETTINGS.q_bins)
    return certify_cells(index, mc, vp, SETTINGS, SETTINGS.certification, seed=SEED)


def lower(of: LabelledCells, rows: IntArray, points: CellPoints) -> FloatArray:
    part = of.points.take(rows)
    right = part.predicted == of.label[rows]
    return VennAbersIndex(part, right, class_count=CLASSES, q_bins=SETTINGS.q_bins).bounds(points).lower


@pytest.mark.parametrize("size", [1, 3])
def test_each_point_gets_p0_from_points_of_other_documents(size: int) -> None:
    mc, vp = split("mc", 600, seed=0, size=size), split("vp", 600, seed=1, size=size)
    fold = fold_of(mc.keys, seed=SEED)
    crossed = np.empty(len(fold))
    for number in range(5):
        own = np.flatnonzero(fold == number)
        crossed[own] = lower(mc, np.flatnonzero(fold != number), mc.points.take(own))
    every = np.arange(len(fold))
    expected = certify(
        CertificatePoints(crossed, mc.points.predicted, mc.label, document_codes(mc.keys)),
        CertificatePoints(lower(mc, every, vp.points), vp.points.predicted, vp.label, document_codes(vp.keys)),
        class_count=CLASSES,
        alpha=Decimal("0.1"),
        kinds=["predicted", "true"],
        confidence=Decimal("0.9"),
    )
    assert certificate(mc, vp) == expected
    assert expected.single_points == (size == 1)


def test_the_order_of_points_does_not_matter() -> None:
    mc, vp = split("mc", 300, seed=2, size=2), split("vp", 300, seed=3, size=2)
    rng = np.random.default_rng(4)

    def shuffled(of: LabelledCells) -> LabelledCells:
        rows = rng.permutation(len(of.keys))
        return LabelledCells(of.points.take(rows), of.label[rows], [of.keys[row] for row in rows.tolist()])

    assert certificate(mc, vp) == certificate(shuffled(mc), shuffled(vp))
