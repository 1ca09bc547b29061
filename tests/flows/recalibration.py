"""What asks for recalibrations of the classifier `edge`, and what became of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sqlalchemy import Row

from tests.running import Bench, Golden
from venn_admit.core.split_names import Split
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, RecalibrationStep
from venn_admit.flows.data.label import label
from venn_admit.flows.shell import Shell
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import SnapshotPoints
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit_client.records.data import Labelling

EDGE = Golden("edge")
# As the settings have them.
QUIET, WAIT = 30.0, 300.0

Due = Callable[..., list[RecalibrationStep]]
REQUEST = "SELECT * FROM recalibration_request"


class NoShell(Shell):
    """Nobody watches, and there are no jobs."""

    def show(self, what: str, total: int | None = None) -> None:
        """Show nothing."""

    def advance(self, rows: int) -> None:
        """Show nothing."""

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        raise AssertionError(f"job {job_id} is asked for: {what} {then}")


class Computing(NoShell):
    """Jobs are computed here."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        assert then is None, what
        self.bench.run(job_id)


def give(bench: Bench, shift: int = 1, rows: range = range(3), part: str = "vp") -> Labelling:
    """Other labels for some calibrating exemplars, as a file that arrives."""
    path = bench.folder / "labels.csv"
    lines = [f"{part}-{row},{(int(EDGE[f'{part}_y'][row]) + shift) % 3}" for row in rows]
    path.write_text("\n".join(["external_id,label", *lines]) + "\n")
    return label(bench.engine, "edge", LabelFile(path), selection="random", retract=False)


def more(bench: Bench, name: str = "more", split: str = "vp") -> int:
    """New held-out exemplars, of which nothing is known; how many."""
    exemplars = EDGE.exemplars("score")
    exemplars["id"] = np.array([f"{name}-{known}" for known in exemplars["id"]])
    return bench.ingest("edge", bench.write(f"{name}.npz", exemplars), split).new


def age(bench: Bench, seconds: float, *columns: str) -> None:
    """Let the requests be from so long ago, or some of their times."""
    names = columns or ("first_requested_at", "last_requested_at")
    changes = ", ".join(f"{name} = {name} - make_interval(secs => {seconds})" for name in names)
    with transaction(bench.engine) as connection:
        connection.exec_driver_sql(f"UPDATE recalibration_request SET {changes}")


def snapshots(bench: Bench) -> list[tuple[Any, ...]]:
    """Every snapshot: its calibrator, number, state and reason."""
    query = "SELECT calibrator_id, number, state, reason FROM calibration ORDER BY id"
    return [tuple(row) for row in bench.rows(query)]


def only_request(bench: Bench) -> Row[Any]:
    (found,) = bench.rows(REQUEST)
    return found


def outcomes(steps: list[RecalibrationStep]) -> list[RecalibrationOutcome]:
    return [step.outcome for step in steps]


def points(bench: Bench, number: int) -> dict[str, list[Any]]:
    """Both splits of a snapshot of the first calibrator."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        key = bench.value("SELECT id FROM calibration WHERE calibrator_id = 1 AND number = :number", number=number)
        calibration = calibrations.by_id(connection, classifier, key)
        return {
            split: listed(calibrations.read_points(connection, calibration, split)) for split in (Split.MC, Split.VP)
        }


def listed(found: SnapshotPoints) -> list[Any]:
    of_points = [getattr(found.points, name) for name in ("label", "predicted", "match_count", "distance", "score")]
    return [column.tolist() for column in (found.exemplar_ids, found.singleton, *of_points)]
