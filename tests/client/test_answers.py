"""What the client reads is what the Python interface returns."""

from dataclasses import asdict, fields

import numpy as np
import pytest

import venn_admit
import venn_admit_client as client
from tests.cli import samples
from tests.cli.program import Program
from tests.cli.samples import CLASS_NAMES, DIMENSION, NAME, SCORED_ROWS
from venn_admit_client import Classifier, Connection

pytestmark = pytest.mark.processes

Served = tuple[Program, str, str]


def test_classifiers(connection: Connection) -> None:
    (only,) = connection.classifiers()
    assert (only.name, only.classes, only.dimension) == (NAME, CLASS_NAMES, DIMENSION)
    assert repr(only) == f"<Classifier '{NAME}': 3 classes, D = {DIMENSION}, K = {samples.K}>"


def test_decisions_are_those_of_the_python_interface(served: Served, classifier: Classifier) -> None:
    points, steps = samples.scored(), []
    decided = classifier.decide_many(
        np.repeat(points["vector"], 6, axis=0),
        logits=np.repeat(points["logits"], 6, axis=0),
        ids=np.repeat(points["external_id"], 6),
        neighbours=samples.K,
        progress=lambda done, rows: steps.append((done, rows)),
    )[::6]
    assert steps == [(1000, 6 * SCORED_ROWS), (6 * SCORED_ROWS, 6 * SCORED_ROWS)]
    assert 0 < decided.is_admitted.sum() < len(decided) == SCORED_ROWS
    with venn_admit.connect(served[0].url) as direct:
        other = direct.classifier(NAME)
        for row, found in enumerate(decided):
            assert found.id == points["external_id"][row]
            if row % 20 == 0:
                expected = other.decide(points["vector"][row], logits=points["logits"][row])
                _check_same(found, expected)
                _check_same(classifier.decide(points["vector"][row], logits=points["logits"][row]), expected)
    assert decided.lower.dtype == decided.distance.dtype == np.float64
    assert list(decided.admitted == decided.predicted) == list(decided.is_admitted)
    assert [reason is None for reason in decided.reason] == list(decided.is_admitted)
    assert not np.isnan(decided.upper[decided.is_admitted]).any()
    assert set(decided.calibration) == {1}
    assert decided.match_count.max() <= samples.K


def test_many_decisions_name_no_neighbours_unless_asked_to(classifier: Classifier) -> None:
    """However many there are: a block of one is none of its own."""
    vectors = samples.scored()["vector"]
    for count in (1, 2):
        assert [one.neighbours for one in classifier.decide_many(vectors[:count])] == [()] * count
        assert [len(one.neighbours) for one in classifier.decide_many(vectors[:count], neighbours=2)] == [2] * count
    assert len(classifier.decide(vectors[0]).neighbours) == samples.K
    assert len(classifier.decide(vectors[0], neighbours=1).neighbours) == 1


def _check_same(found: client.Decision, expected: venn_admit.Decision) -> None:
    for field in fields(expected):
        if field.name not in ("id", "neighbours", "evidence"):
            assert getattr(found, field.name) == getattr(expected, field.name), field.name
    assert list(map(asdict, found.neighbours)) == list(map(asdict, expected.neighbours))
    assert found.evidence["category_counts"] == expected.evidence["category_counts"]


def test_stored_decisions_are_listed_over_pages_and_replayed(classifier: Classifier) -> None:
    listed = list(classifier.decisions())
    assert len(listed) == SCORED_ROWS
    assert [one.number for one in listed] == sorted((one.number for one in listed), reverse=True)
    admitted = list(classifier.decisions(admitted=True, calibration=1))
    assert [one.number for one in admitted] == [one.number for one in listed if one.admitted is not None]
    assert all(one.admitted == one.predicted for one in admitted)
    (one,) = classifier.decisions(exemplar="scored-7")
    again = classifier.replay(one.number)
    assert (again.number, again.id, again.calibration, again.differing) == (one.number, "scored-7", 1, ())
    assert again.stored == again.computed
    assert len(again.neighbours) == samples.K


def test_the_report_and_calibrations(classifier: Classifier) -> None:
    report = classifier.report()
    assert report.classifier == NAME
    assert report.to_dict()["advice"] == list(report.advice)
    (only,) = classifier.calibrations()
    assert (only.id, only.number, only.is_current) == (1, 1, True)
    assert only.mc_points + only.vp_points > 1000
