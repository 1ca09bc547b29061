"""Recalibration of a classifier with logits only: by differences, without a job, and equal to one from scratch."""

import numpy as np
import pytest
from celery import Celery

from tests.flows.logits import CLASSES, NAME, calibrated, exemplars, make, prepared
from tests.flows.recalibration import REQUEST, age
from tests.from_scratch import current_points
from tests.running import Bench
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, recalibrate_due
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit_client.records.data import Labelling

STEPS = """
SELECT cell, step.score, lower, upper_at, upper_above
FROM venn_abers_step AS step
INNER JOIN calibrator ON calibrator.id = calibrator_id
INNER JOIN classifier ON classifier.id = classifier_id
WHERE name = :name AND valid_until IS NULL
ORDER BY cell, step.score
"""
OF_MC = """
SELECT exemplar.external_id, exemplar.document_id, exemplar.label, exemplar.network_logits, exemplar.split
FROM exemplar
INNER JOIN classifier ON classifier.id = classifier_id
WHERE name = :name AND split IN ('mc', 'vp')
ORDER BY md5(external_id)
"""


def give(bench: Bench, labels: dict[str, int | None]) -> Labelling:
    path = bench.folder / "labels.csv"
    lines = [f"{key},{'' if value is None else value}" for key, value in labels.items()]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return label(bench.engine, NAME, LabelFile(path), selection="random", retract=True)


def store_again(bench: Bench, again: str) -> None:
    """What mc and vp are now, in a new classifier, in another order, all at once."""
    make(bench, again)
    for split in ("mc", "vp"):
        rows = [row for row in bench.rows(OF_MC, name=NAME) if row.split == split]
        arrays = {
            "id": np.array([row.external_id for row in rows]),
            "doc": np.array([row.document_id for row in rows]),
            "f": np.array([row.network_logits for row in rows], dtype=np.float32),
            "y": np.array([row.label for row in rows]),
        }
        bench.ingest(again, bench.write("again.npz", arrays), split)


@pytest.fixture
def changed(bench: Bench) -> Bench:
    """Calibrated, after which labels arrived for scored rows, and some were corrected and taken back."""
    prepared(bench)
    new = exemplars("new", 300, seed=2)
    unlabelled = {name: values for name, values in new.items() if name != "y"}
    bench.score(NAME, bench.write("new.npz", unlabelled), weighted=None)
    given = give(bench, dict(zip(new["id"].tolist(), new["y"].tolist(), strict=True)))
    assert given.calibrating.keys() == {"mc", "vp"}
    assert sum(given.calibrating.values()) == 300
    corrected = {f"held-out-{row}": (int(row) + 1) % CLASSES for row in range(40)}
    assert give(bench, {**corrected, **{f"held-out-{row}": None for row in range(40, 80)}}).recalibrations_due == 1
    return bench


def test_it_is_that_from_scratch(changed: Bench) -> None:
    before = changed.value("SELECT count(*) FROM calibration_point WHERE valid_until IS NULL")
    done = calibrated(changed)
    assert 0 < done.changed.closed < before / 4
    store_again(changed, "again")
    assert calibrated(changed, "again").mc_count == done.mc_count
    assert current_points(changed, NAME) == current_points(changed, "again")
    assert changed.rows(STEPS, name=NAME) == changed.rows(STEPS, name="again")
    for row in changed.rows("SELECT id FROM decision ORDER BY id")[::25]:
        assert replay(changed.workspace(), row.id).differing == ()


def test_a_second_look_writes_no_row(changed: Bench) -> None:
    calibrated(changed)
    again = calibrated(changed)
    assert (again.changed.closed, again.changed.opened) == (0, 0)


def test_beat_serves_it_at_once_without_a_job(changed: Bench) -> None:
    app = Celery(broker="memory://", set_as_current=False)  # there is nothing to send
    jobs = changed.value("SELECT count(*) FROM job")
    age(changed, 60)
    (step,) = recalibrate_due(
        changed.workspace(chunk_rows=100, keep_calibrations=None), app, quiet_seconds=30, wait_seconds=300
    )
    assert (step.outcome, step.job_id) == (RecalibrationOutcome.RECALIBRATED, None)
    assert changed.rows(REQUEST) == []
    assert changed.value("SELECT count(*) FROM job") == jobs
    assert changed.value("SELECT reason FROM calibration WHERE state = 'current'") == "labels"
