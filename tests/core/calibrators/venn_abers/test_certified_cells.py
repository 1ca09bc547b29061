"""Which points of a snapshot propose, and that their order does not matter."""

from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.calibrators.certified.certificate import Certificate
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.settings import make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells, certify_cells, proposing_rows
from venn_admit.core.documents import document_codes

CLASSES, SEED = 2, 7
SETTINGS = make_venn_abers_settings(CLASSES, 5, q_bins=(0, 3), certify=["predicted", "true"], confidence=Decimal("0.9"))


def cells(documents: int, *, seed: int, size: int = 1) -> LabelledCells:
    rng = np.random.default_rng(seed)
    n = documents * size
    score = np.round(0.5 + rng.beta(4, 1, n) / 2, 2)
    predicted = rng.integers(CLASSES, size=n)
    label = np.where(rng.random(n) < score, predicted, 1 - predicted)
    return LabelledCells(
        CellPoints(predicted, rng.integers(0, 6, n), score), label, [f"{row // size}" for row in range(n)]
    )


def certificate(of: LabelledCells, proposing: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Certificate:
    assert SETTINGS.certification is not None
    return certify_cells(of, proposing, SETTINGS, SETTINGS.certification)


@pytest.mark.parametrize("size", [1, 3])
def test_those_that_propose_are_no_evidence_and_the_order_of_points_does_not_matter(size: int) -> None:
    of = cells(900, seed=2, size=size)
    proposing = proposing_rows(of.keys, np.arange(900 * size) < 150 * size, seed=SEED)
    found = certificate(of, proposing)

    def points(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> CertificatePoints:
        taken = of.take(rows)
        return CertificatePoints(taken.points.score, taken.points.predicted, taken.label, document_codes(taken.keys))

    assert (found.proposing, found.points) == (150 * size, 750 * size)
    assert found == certify(
        points(proposing),
        points(~proposing),
        class_count=CLASSES,
        alpha=Decimal("0.1"),
        kinds=["predicted", "true"],
        confidence=Decimal("0.9"),
    )
    rows = np.random.default_rng(4).permutation(len(of.keys))
    shuffled = LabelledCells(of.points.take(rows), of.label[rows], [of.keys[row] for row in rows.tolist()])
    assert certificate(shuffled, proposing[rows]) == found


def test_without_enough_points_of_knn_one_document_in_ten_proposes_too() -> None:
    keys = [f"{row // 2}" for row in range(4000)]
    none, few, enough = (np.arange(4000) < count for count in (0, 48, 50))
    drawn = proposing_rows(keys, none, seed=SEED)
    assert 0.08 < drawn.mean() < 0.12
    assert (drawn[::2] == drawn[1::2]).all(), "documents stay together"
    assert (proposing_rows(keys, few, seed=SEED) == (drawn | few)).all()
    assert (proposing_rows(keys, enough, seed=SEED) == enough).all()
    one_document = ["a" if row < 60 else key for row, key in enumerate(keys)]
    assert proposing_rows(one_document, np.arange(4000) < 60, seed=SEED).sum() > 60
