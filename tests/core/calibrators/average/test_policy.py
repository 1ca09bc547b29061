"""The policy of the average promise: class by class, one point a document, whatever the order of rows."""

import json
from decimal import Decimal

import numpy as np
import pytest

from venn_admit.core.calibrators.average.policy import (
    NO_TRAFFIC,
    UnlabelledCells,
    from_document,
    one_of_each_document,
    select_on_average,
    selection_threshold,
    to_document,
)
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.errors import InvalidInputError

TENTH = Decimal("0.1")


def labelled(count: int, size: int = 1) -> LabelledCells:
    """Points of three predicted classes in documents of this size, of which the third class has none."""
    rng = np.random.default_rng(count)
    predicted, score = rng.integers(0, 2, count), rng.integers(50, 101, count) / 100
    label = np.where(rng.random(count) < score, predicted, 2)
    keys = [f"d{row // size}" for row in range(count)]
    return LabelledCells(CellPoints(predicted, np.zeros(count, np.int64), score), label, keys)


def traffic(count: int) -> UnlabelledCells:
    cells = labelled(count)
    return UnlabelledCells(cells.points, [f"t{row}" for row in range(count)])


def test_each_class_has_its_own_labels_and_batch() -> None:
    calibration, recent = labelled(600), traffic(900)
    found = select_on_average(calibration, recent, class_count=3, alpha=TENTH)
    wrong = calibration.label != calibration.points.predicted
    for number, one in enumerate(found.classes[:2]):
        own, of_traffic = calibration.points.predicted == number, recent.points.predicted == number
        batch = np.concatenate([calibration.points.score[own], recent.points.score[of_traffic]])
        errors = calibration.points.score[own & wrong]
        assert one.threshold == selection_threshold(errors, own.sum(), batch, TENTH, further=True)
        assert one.threshold is not None
        assert (one.labels, one.wrong, one.batch) == (own.sum(), len(errors), len(batch))
        assert (one.admitted, one.admitted_wrong) == (
            (batch >= one.threshold).sum(),
            (errors >= one.threshold).sum(),
        )
    assert found.classes[2].threshold is None
    assert (found.points, found.documents, found.traffic) == (600, 600, 900)
    least = np.array([2 if one is None else one for one in found.policy.thresholds])
    assert found.admitted == (calibration.points.score >= least[calibration.points.predicted]).sum()
    assert select_on_average(calibration, NO_TRAFFIC, class_count=3, alpha=TENTH).traffic == 0


@pytest.mark.parametrize("size", [1, 4])
def test_neither_order_nor_names_of_rows_matter(size: int) -> None:
    calibration, recent = labelled(600, size), traffic(300)
    first = select_on_average(calibration, recent, class_count=3, alpha=TENTH)
    order = np.random.default_rng(0).permutation(600)
    others = LabelledCells(
        calibration.points.take(order), calibration.label[order], [f"x{calibration.keys[row]}" for row in order]
    )
    assert select_on_average(others, recent, class_count=3, alpha=TENTH) == first


def test_one_point_of_a_document_and_class_counts_and_a_wrong_one_of_equal_scores() -> None:
    cells = labelled(600, 4)
    right = cells.points.predicted == cells.label
    counted = one_of_each_document(cells.points, right, cells.keys)
    pairs = list(zip(cells.keys, cells.points.predicted.tolist(), strict=True))
    assert sorted(np.array(pairs)[counted].tolist()) == sorted([list(map(str, pair)) for pair in set(pairs)])
    assert one_of_each_document(cells.points, right, [str(row) for row in range(600)]).all()
    alike = CellPoints(np.zeros(2, np.int64), np.zeros(2, np.int64), np.full(2, 0.5))
    assert one_of_each_document(alike, np.array([True, False]), ["a", "a"]).tolist() == [False, True]
    # Drawn by the score alone, so labels do not matter otherwise.
    distinct = CellPoints(cells.points.predicted, cells.points.match_count, cells.points.score + np.arange(600) / 1e6)
    drawn = one_of_each_document(distinct, right, cells.keys)
    assert (drawn == one_of_each_document(distinct, ~right, cells.keys)).all()


def test_too_few_labels_admit_nothing_and_say_how_many_it_takes() -> None:
    cells = labelled(8)
    found = select_on_average(cells, NO_TRAFFIC, class_count=3, alpha=TENTH)
    assert found.policy.thresholds == (None, None, None)
    assert (found.labels_needed, found.share) == (9, 0.0)
    assert select_on_average(cells, NO_TRAFFIC, class_count=3, alpha=Decimal("0.15")).labels_needed == 6


def test_a_stored_policy_is_read_as_it_was() -> None:
    found = select_on_average(labelled(200, 2), traffic(50), class_count=3, alpha=TENTH)
    document = json.loads(json.dumps(to_document(found)))
    assert document["promise"] == "average"
    assert from_document(document) == found
    for broken in ({}, {**document, "classes": [{}]}, {**document, "alpha": "x"}):
        with pytest.raises(InvalidInputError, match="expected the document of an average promise"):
            from_document(broken)
