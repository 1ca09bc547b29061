"""Calibration: numbered snapshots that write what changed, and stay readable as they were."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from tests.plans.plans import explain, kinds, scans
from tests.running import Bench, Golden
from tests.templates import CopyOf, Filled
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.snapshot_rows import join_rows, rows_of_split
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, CalibrationPoints, IntArray, KnnParameters
from venn_admit.errors import InvalidInputError, NotFoundError, NotReadyError
from venn_admit.flows.calibration.calibrate import calibrate_on_stored, request_approximations
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.export import Export
from venn_admit.store.calibrations import calibrations, calibrators
from venn_admit.store.calibrations.calibration_points import ChangedRows
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.calibrations.settings_rows import settings_digest
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.database.statements import statement
from venn_admit.store.exemplars import approximations, classifiers

EDGE = Golden("edge")
POINTS = 1000  # of mc and vp together


def prepare(bench: Bench) -> None:
    EDGE.prepare(bench, "edge")


@pytest.fixture(scope="module")
def prepared(filled: Filled) -> str:
    return filled(prepare)


@pytest.fixture
def edge(copy_of: CopyOf, prepared: str) -> Bench:
    """The classifier `edge` of the golden file, not calibrated yet."""
    return copy_of(prepared)


def calibrated(bench: Bench, **changed: Any) -> tuple[Calibration, ChangedRows]:
    done = bench.calibrate("edge", **(EDGE.settings | changed))
    return snapshot(bench, done.calibration_id), done.changed


def snapshot(bench: Bench, calibration_id: int) -> Calibration:
    with connect(bench.engine) as connection:
        return calibrations.by_id(connection, classifiers.by_name(connection, "edge"), calibration_id)


def read(bench: Bench, calibration: Calibration) -> dict[str, list[Any]]:
    """Both splits of a snapshot, column by column."""
    found: dict[str, list[Any]] = {}
    with connect(bench.engine) as connection:
        for split in (Split.MC, Split.VP):
            stored = calibrations.read_points(connection, calibration, split)
            found[f"{split} ids"] = stored.exemplar_ids.tolist()
            found[f"{split} singleton"] = stored.singleton.tolist()
            for field in fields(CalibrationPoints):
                found[f"{split} {field.name}"] = getattr(stored.points, field.name).tolist()
    return found


def relabel(bench: Bench, external_ids: list[str]) -> None:
    """Give some exemplars the next class, as a label that arrives does."""
    with transaction(bench.engine) as connection:
        update = text("UPDATE exemplar SET label = (label + 1) % 3 WHERE external_id = ANY(:ids)")
        assert connection.execute(update, {"ids": external_ids}).rowcount == len(external_ids)


def point_rows(bench: Bench) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in bench.rows("SELECT * FROM calibration_point ORDER BY 1, 2, 3")]


class TestSnapshots:
    def test_the_first_writes_every_point(self, edge: Bench) -> None:
        first, changed = calibrated(edge)
        assert (first.number, first.mc_count, first.vp_count) == (1, 500, 500)
        assert changed == ChangedRows(closed=0, opened=POINTS)

    def test_the_quartiles_of_d_are_those_that_sql_finds(self, edge: Bench) -> None:
        calibrated(edge)
        found = edge.value(
            "SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY distance) FROM calibration_point"
        )
        assert edge.value("SELECT quartiles FROM snapshot_quartiles") == found

    def test_with_nothing_changed_writes_no_row_and_counts_on(self, edge: Bench) -> None:
        first, _ = calibrated(edge)
        before = point_rows(edge)
        second, changed = calibrated(edge)
        assert changed == ChangedRows(closed=0, opened=0)
        assert point_rows(edge) == before
        assert (second.number, second.calibrator_id) == (2, first.calibrator_id)
        assert second.revision != first.revision
        assert read(edge, second) == read(edge, first)
        states = edge.rows("SELECT number, state FROM calibration ORDER BY number")
        assert [tuple(row) for row in states] == [(1, "retired"), (2, "current")]

    def test_the_latest_is_the_one_in_use(self, edge: Bench) -> None:
        calibrated(edge)
        other, _ = calibrated(edge, kappa=4)
        again, _ = calibrated(edge)
        with connect(edge.engine) as connection:
            assert calibrations.latest(connection, classifiers.by_name(connection, "edge")) == again
        assert edge.value("SELECT count(*) FROM calibration WHERE state = 'current'") == 2
        assert other.calibrator_id != again.calibrator_id

    def test_an_exact_alpha_comes_back_exactly(self, edge: Bench) -> None:
        alpha = Decimal("0.13700000000000000000000000000001")
        found, _ = calibrated(edge, alpha=alpha, delta=math.inf, q_bins=(0, 2, 4))
        assert found.settings == make_settings(3, 5, alpha=alpha, delta=math.inf, kappa=3, q_bins=(0, 2, 4))
        assert found.radius.omega == math.inf


class TestSettings:
    @pytest.mark.parametrize(
        "changed",
        [
            {"alpha": Decimal("0.25")},
            {"delta": 2.0},
            {"kappa": 4},
            {"q_bins": (0, 1, 3)},
            {"thresholds": (Decimal("0.8"), Decimal("0.9"), Decimal("0.8"))},
        ],
    )
    def test_any_change_is_another_calibrator(self, edge: Bench, changed: dict[str, Any]) -> None:
        first, _ = calibrated(edge)
        kept = read(edge, first)
        other, rows = calibrated(edge, **changed)
        assert other.calibrator_id != first.calibrator_id
        assert other.number == 1
        assert rows == ChangedRows(closed=0, opened=POINTS)
        assert read(edge, first) == kept
        assert snapshot(edge, first.id) == first

    def test_written_otherwise_they_are_the_same(self, edge: Bench) -> None:
        first, _ = calibrated(edge, alpha=Decimal("0.2"))
        second, rows = calibrated(edge, alpha=Decimal("0.200"), thresholds=(Decimal("0.80"),) * 3)
        assert second.calibrator_id == first.calibrator_id
        assert rows == ChangedRows(closed=0, opened=0)

    def test_wrong_ones_are_refused_before_any_work(self, edge: Bench) -> None:
        with pytest.raises(InvalidInputError, match="alpha must lie strictly between 0 and 1"):
            calibrated(edge, alpha=Decimal(1))
        assert edge.value("SELECT count(*) FROM job") == 0
        assert edge.value("SELECT count(*) FROM calibrator") == 0


class TestOldSnapshots:
    def test_read_as_they_were_after_other_parameters(self, edge: Bench) -> None:
        first, _ = calibrated(edge)
        kept = read(edge, first)
        given = EDGE.parameters
        edge.adopt("edge", KnnParameters(given.beta[::-1], given.gamma, 2 * given.eta), 0.7)
        second, changed = calibrated(edge)
        assert changed == ChangedRows(closed=POINTS, opened=POINTS)
        assert read(edge, second) != kept
        assert read(edge, first) == kept
        assert snapshot(edge, first.id) == first
        assert first.knn_parameters_id != second.knn_parameters_id

    def test_read_as_they_were_after_labels(self, edge: Bench) -> None:
        snapshots, kept = [], []
        for part in ("mc-1", "vp-2", "mc-1"):
            snapshots.append(calibrated(edge)[0])
            kept.append(read(edge, snapshots[-1]))
            relabel(edge, [part])
        assert [read(edge, known) for known in snapshots] == kept
        assert kept[0] != kept[1] != kept[2]

    def test_export_tells_them_apart(self, edge: Bench) -> None:
        first, _ = calibrated(edge)
        kept = edge.export("edge", Export.CALIBRATION)
        relabel(edge, ["mc-1"])
        second, _ = calibrated(edge)
        assert edge.export("edge", Export.CALIBRATION, calibration_id=first.id) == kept
        assert edge.export("edge", Export.CALIBRATION, calibration_id=second.id) != kept
        assert edge.export("edge", Export.CALIBRATION) == edge.export(
            "edge", Export.CALIBRATION, calibration_id=second.id
        )

    def test_of_another_classifier_are_not_found(self, edge: Bench) -> None:
        first, _ = calibrated(edge)
        edge.create("other", dimension=8)
        with pytest.raises(NotFoundError, match=f"'other' has no calibration {first.id}"):
            edge.export("other", Export.CALIBRATION, calibration_id=first.id)


class TestPartialChange:
    def test_a_label_of_vp_writes_its_row_alone(self, edge: Bench) -> None:
        """The sets of vp never look at the labels of vp, and omega is that of mc."""
        calibrated(edge)
        relabel(edge, ["vp-3", "vp-77"])
        second, changed = calibrated(edge)
        assert changed == ChangedRows(closed=2, opened=2)
        rows = edge.rows(
            "SELECT external_id, valid_from, valid_until, point.label FROM calibration_point AS point"
            " JOIN exemplar ON exemplar_id = exemplar.id"
            " WHERE external_id IN ('vp-3', 'vp-77') ORDER BY exemplar_id, valid_from"
        )
        old = {name: int(EDGE["vp_y"][int(name.partition("-")[2])]) for name in ("vp-3", "vp-77")}
        assert [tuple(row) for row in rows] == [
            row
            for name, label in old.items()
            for row in ((name, 1, second.number, label), (name, second.number, None, (label + 1) % 3))
        ]

    def test_a_label_of_mc_writes_its_row_and_the_sets_it_changes(self, edge: Bench) -> None:
        first, _ = calibrated(edge, delta=math.inf)
        before = edge.export("edge", Export.CALIBRATION)
        relabel(edge, ["mc-3"])
        second, changed = calibrated(edge, delta=math.inf)
        after = edge.export("edge", Export.CALIBRATION)
        different = sum(one != other for one, other in zip(before.to_pylist(), after.to_pylist(), strict=True))
        assert changed == ChangedRows(closed=different, opened=different)
        assert 1 <= different < POINTS / 2
        assert first.radius.omega == second.radius.omega == math.inf

    def test_new_points_open_theirs(self, edge: Bench) -> None:
        calibrated(edge)
        more = EDGE.exemplars("score")
        edge.ingest("edge", edge.write("more.npz", more), "vp")
        second, changed = calibrated(edge)
        assert changed == ChangedRows(closed=0, opened=160)
        assert (second.mc_count, second.vp_count) == (500, 660)

    def test_a_point_that_is_gone_is_closed(self, edge: Bench) -> None:
        """Such as one whose label was retracted, or chosen rather than random."""
        first, _ = calibrated(edge)
        kept = read(edge, first)
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET split = 'scored' WHERE external_id = 'vp-5'")
        second, changed = calibrated(edge)
        assert changed == ChangedRows(closed=1, opened=0)
        assert len(read(edge, second)["vp ids"]) == 499
        assert read(edge, first) == kept
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET split = 'vp' WHERE external_id = 'vp-5'")
        third, changed = calibrated(edge)
        assert changed == ChangedRows(closed=0, opened=1)
        assert read(edge, third) == kept
        assert len(read(edge, second)["vp ids"]) == 499

    def test_a_label_leaves_neighbours_and_approximations(self, edge: Bench) -> None:
        calibrated(edge)
        relabel(edge, ["mc-3"])
        job_id = request_approximations(edge.workspace(chunk_rows=10), "edge")
        assert edge.value("SELECT row_count FROM job WHERE id = :id", id=job_id) == 0


class TestWhatCountsAsAChange:
    """Any column, to the last bit; one row changes in each case."""

    POINTS = CalibrationPoints(
        label=np.array([0, 1, 2, 0]),
        predicted=np.array([0, 1, 2, 1]),
        match_count=np.array([5, 4, 0, 1]),
        distance=np.array([0.1, 0.2, 0.3, 0.4]),
        score=np.array([0.3, 0.1, 0.7, 0.2]),
    )
    SETS = np.eye(3, dtype=np.bool_)[[0, 1, 2, 1]]

    def publish(
        self, bench: Bench, points: CalibrationPoints, bins: IntArray, sets: BoolArray, split: Split = Split.VP
    ) -> ChangedRows:
        """A snapshot with these points in vp, but for the first, which is in the split given."""
        with transaction(bench.engine) as connection:
            classifier = classifiers.by_name(connection, "edge")
            parameters = approximations.current_parameters(connection, classifier)
            assert parameters is not None
            ids = np.array(connection.execute(text("SELECT id FROM exemplar ORDER BY id LIMIT 4")).scalars().all())
            parts = []
            for rows, owner in ((slice(0, 1), split), (slice(1, 4), Split.VP)):
                part = CalibrationPoints(*(getattr(points, field.name)[rows] for field in fields(points)))
                owned = sets[rows] if owner == Split.VP else None
                parts.append(rows_of_split(ids[rows], part, bins[rows], owned, class_count=3))
            _, changed = calibrations.store(
                connection,
                calibrators.add(connection, classifier, make_settings(3, 5)),
                join_rows(parts),
                knn_parameters_id=parameters.id,
                reason="test",
            )
        return changed

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("label", 2),
            ("predicted", 2),
            ("match_count", 3),
            ("distance", np.nextafter(0.1, 1)),
            ("score", np.nextafter(0.3, 0)),
        ],
    )
    def test_values(self, edge: Bench, column: str, value: float) -> None:
        bins = self.POINTS.match_count
        assert self.publish(edge, self.POINTS, bins, self.SETS) == ChangedRows(0, 4)
        values = getattr(self.POINTS, column).copy()
        values[0] = value
        changed = replace(self.POINTS, **{column: values})
        assert self.publish(edge, changed, bins, self.SETS) == ChangedRows(1, 1)
        assert self.publish(edge, changed, bins, self.SETS) == ChangedRows(0, 0)

    def test_bins_sets_and_splits(self, edge: Bench) -> None:
        bins, sets = np.array([5, 4, 0, 1]), self.SETS.copy()
        assert self.publish(edge, self.POINTS, bins, sets) == ChangedRows(0, 4)
        bins[0] = 4
        assert self.publish(edge, self.POINTS, bins, sets) == ChangedRows(1, 1)
        sets[0] = [False, True, False]
        assert self.publish(edge, self.POINTS, bins, sets) == ChangedRows(1, 1)
        assert self.publish(edge, self.POINTS, bins, sets, Split.MC) == ChangedRows(1, 1)
        assert self.publish(edge, self.POINTS, bins, sets, Split.MC) == ChangedRows(0, 0)


class TestRefusals:
    def test_before_the_fit(self, bench: Bench) -> None:
        bench.create("edge", dimension=8, class_count=3, neighbour_count=5)
        with pytest.raises(NotReadyError, match="no KNN parameters yet: fit it first"):
            calibrated(bench)

    def test_before_the_approximations(self, edge: Bench) -> None:
        with pytest.raises(NotReadyError, match="1000 points of 'edge' arrived or changed during the calibration"):
            calibrate_on_stored(edge.workspace(), find(edge.engine, "edge"), make_settings(3, 5), reason="test")
        assert edge.value("SELECT count(*) FROM calibrator") == 0

    @pytest.mark.parametrize(("split", "other"), [("mc", "vp"), ("vp", "mc")])
    def test_with_one_class_alone(self, bench: Bench, split: str, other: str) -> None:
        bench.create("edge", dimension=8, class_count=3, neighbour_count=5)
        bench.adopt("edge", EDGE.parameters, 1.0)
        bench.ingest("edge", bench.write("train.npz", EDGE.exemplars("train")), "train")
        bench.ingest("edge", bench.write("other.npz", EDGE.exemplars(other)), other)
        with pytest.raises(NotReadyError, match=f"split {split} of 'edge' holds no labelled exemplar"):
            calibrated(bench)
        rows = EDGE.exemplars(split)
        bench.ingest("edge", bench.write("rows.npz", rows | {"y": np.ones_like(rows["y"])}), split)
        with pytest.raises(NotReadyError, match=f"split {split} of 'edge' holds only class 1"):
            calibrated(bench)


def test_one_at_a_time(edge: Bench) -> None:
    """Several at once wait for each other: their numbers follow, and only the first finds changes."""
    job_id = request_approximations(edge.workspace(chunk_rows=2048), "edge")
    edge.run(job_id)
    known = find(edge.engine, "edge")
    with ThreadPoolExecutor(3) as pool:
        done = list(
            pool.map(
                lambda _: calibrate_on_stored(edge.workspace(), known, make_settings(3, 5), reason="test"), range(3)
            )
        )
    assert sorted(one.changed.opened for one in done) == [0, 0, POINTS]
    numbers = edge.rows("SELECT number, state FROM calibration ORDER BY id")
    assert [tuple(row) for row in numbers] == [(1, "retired"), (2, "retired"), (3, "current")]


def test_another_setting_does_not_wait(edge: Bench) -> None:
    """A lock is of one calibrator, whether or not that was there before."""
    calibrated(edge)
    with transaction(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        for kappa in (EDGE.settings["kappa"], 5):
            calibrators.lock(connection, classifier, make_settings(3, 5, **(EDGE.settings | {"kappa": kappa})))
        with transaction(edge.engine) as other:
            settings = make_settings(3, 5, **EDGE.settings)
            assert not calibrators.try_lock(other, classifier, settings)
        assert calibrated(edge, kappa=4)[0].number == 1
    with transaction(edge.engine) as other:
        assert calibrators.try_lock(other, classifier, settings)


@pytest.mark.parametrize("omega", [0.1, math.inf])
def test_bands_are_read_from_the_index_alone_from_the_first(reviews: Bench, omega: float) -> None:
    """On 14,000 new points, and on some hundreds that changed among them."""
    for relabelled in ("true", "mod(id, 40) = 0"):
        with transaction(reviews.engine) as connection:
            flip = f"UPDATE exemplar SET label = 1 - label WHERE split IN ('mc', 'vp') AND {relabelled}"
            connection.exec_driver_sql(flip)
        done = reviews.calibrate("reviews", kappa=90)
        with connect(reviews.engine) as connection:
            calibration = calibrations.by_id(
                connection, classifiers.by_name(connection, "reviews"), done.calibration_id
            )
            parameters = {
                "calibrator_id": calibration.calibrator_id,
                "class_count": 2,
                "alpha": calibration.settings.alpha,
                "omega": omega,
                "predicted": 1,
                "bin": 25,
                "distance": 4.0,
            }
            nodes = explain(connection, str(statement("bands.band_evidence")), parameters, analyze=True)
        reads = scans(nodes, "calibration_point")
        assert kinds(reads) == {("Index Only Scan", "calibration_point_band_idx")}
        assert [node["Heap Fetches"] for node in reads] == [0, 0]


def test_equal_numbers_are_one_setting_however_they_are_written() -> None:
    digests = {
        settings_digest(make_settings(2, 5, alpha=Decimal(alpha), delta=delta, kappa=7))
        for alpha in ("0.1", "0.10")
        for delta in (2, 2.0, np.float64(2))
    }
    # Stored calibrators are found by it, whatever the version of the program that stored them.
    assert {digest.hex() for digest in digests} == {"08dfd51f2f3203c89e29834f90a49b6c"}
