"""`snapshot_diff_v1`: what flips is what the core decides otherwise, and each flip has the one cause that changed."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine

from tests.running import Bench, Golden
from venn_admit.core.calibrators.venn_admit.decide import decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, KnnParameters
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

NAME = "sentiment"
# Few of the training data, so that most points keep their neighbours.
LATE = 20
STRICTER = (Decimal("0.97"),) * 2
APPROXIMATIONS = """
SELECT external_id, approximation.logits, approximation.predicted, approximation.match_count, approximation.distance
FROM decision
INNER JOIN calibration ON calibration_id = calibration.id
INNER JOIN exemplar ON exemplar_id = exemplar.id
INNER JOIN approximation USING (exemplar_id, knn_parameters_id)
WHERE calibration_id = :calibration
ORDER BY decision.id
"""
DECIDED_ON = """
SELECT external_id, logits, match_count, distance
FROM decision INNER JOIN exemplar ON exemplar_id = exemplar.id
WHERE calibration_id = :calibration
"""
PARTITIONS = """
SELECT q_from, label, coalesce(sum(admitted), 0) AS admitted
FROM report.partition_v2 WHERE calibration = :calibration GROUP BY q_from, label
"""


class Snapshots:
    """Golden reviews without a part of their training data, each snapshot with decisions on the same points."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.bench, self.golden = Bench(engine, folder), Golden(NAME)
        self.golden.prepare(self.bench, NAME, train=slice(LATE, None))
        self.path = self.bench.write("score.npz", self.golden.exemplars("score"))
        self.outcomes: dict[int, dict[str, str]] = {}

    def calibrate(self, **settings: Any) -> int:
        made = self.bench.calibrate(NAME, **{**self.golden.settings, **settings}).calibration_id
        self.bench.score(NAME, self.path, weighted=False, calibration_id=made)
        self.outcomes[made] = self.decided(made)
        return made

    def calibrate_by_score(self, **settings: Any) -> int:
        made = self.bench.calibrate_abers(NAME, score="network", **settings).calibration_id
        self.bench.score(NAME, self.path, calibration_id=made)
        return made

    def relabel(self, remainder: int) -> None:
        """Change the labels of a twelfth of the calibration points."""
        flip = "UPDATE exemplar SET label = 1 - label WHERE split IN ('mc', 'vp') AND mod(id, 12) = "
        with transaction(self.bench.engine) as connection:
            connection.exec_driver_sql(flip + str(remainder))

    def add_training(self) -> None:
        rest = {key: values[:LATE] for key, values in self.golden.exemplars("train").items()}
        self.bench.ingest(NAME, self.bench.write("more.npz", rest), "train")

    def refit(self) -> None:
        golden = self.golden
        parameters = KnnParameters(golden["beta"], golden["gamma"], 3 * float(golden["eta"]))
        self.bench.adopt(NAME, parameters, 1.0)

    def decided(self, calibration_id: int) -> dict[str, str]:
        """What the core decides by the points of the newest snapshot and the approximations of now."""
        with connect(self.bench.engine) as connection:
            classifier = classifiers.by_name(connection, NAME)
            calibration = calibrations.by_id(connection, classifier, calibration_id)
            mc, vp = (calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP))
        of_snapshot: dict[str, Any] = {
            "class_count": classifier.class_count,
            "settings": calibration.settings,
            "omega": calibration.radius.omega,
        }
        rows = self.bench.rows(APPROXIMATIONS, calibration=calibration_id)
        columns = ("logits", "predicted", "match_count", "distance")
        selection = decide(
            AdmitIndex(mc.points, **of_snapshot),
            VennIndex(vp.points, vp.singleton, **of_snapshot),
            Approximation(*(np.array([getattr(row, column) for row in rows]) for column in columns)),
            calibration.settings,
            neighbour_count=int(self.golden["K"]),
            require_full_match=False,
            localizer=None,
        ).selection
        return {
            row.external_id: str(Reason.of_code(reason))
            if decision < 0
            else f"admitted as {classifier.class_names[decision]}"
            for row, decision, reason in zip(rows, selection.decision.tolist(), selection.reason.tolist(), strict=True)
        }

    def flips(self, a: int, b: int, kind: str = "decision") -> list[Any]:
        query = "SELECT * FROM report.snapshot_diff_v1(:a, :b) WHERE kind = :kind"
        return self.bench.rows(query, a=a, b=b, kind=kind)

    def admitting(self, calibration: int) -> dict[tuple[int, int], int]:
        """The points that each partition admits, without those that admit none."""
        rows = self.bench.rows(PARTITIONS, calibration=calibration)
        return {(row.q_from, row.label): row.admitted for row in rows if row.admitted}

    def check(self, a: int, b: int, cause: str) -> None:
        before, after = self.outcomes[a], self.outcomes[b]
        expected = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
        found = self.flips(a, b)
        assert {row.external_id: (row.outcome_a, row.outcome_b) for row in found} == expected
        assert len(found) == len(expected) > 0
        assert {row.external_id: row.cause for row in found} == dict.fromkeys(expected, cause)
        changed = self.admitting(a).keys() ^ self.admitting(b).keys()
        partitions = {(row.q_from, row._mapping["class"]): row.cause for row in self.flips(a, b, "partition")}
        assert partitions == dict.fromkeys(changed, cause)


def same_view(made: Snapshots, a: int, b: int) -> set[str]:
    """The points of which the KNN said the same when each snapshot decided."""
    before, after = (
        {row.external_id: tuple(row)[1:] for row in made.bench.rows(DECIDED_ON, calibration=calibration)}
        for calibration in (a, b)
    )
    return {key for key in before if before[key] == after[key]}


def test_each_flip_has_the_one_cause_that_changed(engine: Engine, tmp_path: Path) -> None:
    made = Snapshots(engine, tmp_path)
    first = made.calibrate()
    stricter = made.calibrate(thresholds=STRICTER)
    starved = made.calibrate(kappa=10 * made.golden.settings["kappa"])
    made.check(first, stricter, "threshold")
    made.check(stricter, first, "threshold")
    made.check(first, starved, "threshold")
    made.relabel(0)
    relabelled = made.calibrate()
    made.check(first, relabelled, "new labels")
    made.add_training()
    grown = made.calibrate()
    made.check(relabelled, grown, "training data")
    same = same_view(made, relabelled, grown)
    assert {row.external_id in same for row in made.flips(relabelled, grown)} == {True, False}
    made.refit()
    refitted = made.calibrate()
    made.check(grown, refitted, "parameters")
    assert made.flips(first, first) == []


def test_of_two_changes_a_flip_has_the_one_that_its_own_evidence_tells(engine: Engine, tmp_path: Path) -> None:
    """Labels and training data changed: where the KNN says the same of a point, labels remain."""
    made = Snapshots(engine, tmp_path)
    first = made.calibrate()
    made.relabel(0)
    made.add_training()
    second = made.calibrate()
    same = same_view(made, first, second)
    flips = made.flips(first, second)
    assert {row.external_id: row.cause for row in flips} == {
        row.external_id: "new labels" if row.external_id in same else "training data" for row in flips
    }
    assert {row.external_id in same for row in flips} == {True, False}


def test_by_the_score_of_the_network_training_data_are_no_cause(engine: Engine, tmp_path: Path) -> None:
    made = Snapshots(engine, tmp_path)
    first = made.calibrate_by_score()
    made.add_training()
    grown = made.calibrate_by_score()
    assert made.flips(first, grown) == []
    made.relabel(0)
    relabelled = made.calibrate_by_score()
    stricter = made.calibrate_by_score(thresholds=STRICTER)
    for a, b, cause in ((first, relabelled, "new labels"), (relabelled, stricter, "threshold")):
        flips = made.flips(a, b)
        assert flips
        assert {row.cause for row in flips} == {cause}
