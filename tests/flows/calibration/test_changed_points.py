"""A recalibration reads the points that changed since the snapshot before, and no others; the ledger misses none."""

from typing import Any

import pytest
from sqlalchemy import Connection

from tests.flows.recalibration import EDGE, Computing, give, more
from tests.running import Bench
from venn_admit.core.monitoring.history import PointChanges
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.calibration.recalibrate import recalibrate
from venn_admit.flows.data.export import Export
from venn_admit.flows.data.label import label
from venn_admit.flows.data.settings import retire
from venn_admit.methods.venn_admit.make import MadeByAdmit, make_again
from venn_admit.store.calibrations import point_changes
from venn_admit.store.calibrations.calibration_points import ChangedRows
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import approximations, classifiers

LEDGER = "SELECT count(*) FROM point_change"


@pytest.fixture
def edge(edge: Bench) -> Bench:
    """With a snapshot of its own, since numbers of transactions are another database's in a copy."""
    edge.calibrate("edge", **EDGE.settings)
    return edge


def changed(bench: Bench) -> list[str] | None:
    """The points that a recalibration under the first setting would look at, by external id; None for all."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        parameters = approximations.current_parameters(connection, classifier)
        assert parameters is not None
        ids = point_changes.changed_points(connection, classifier, 1, parameters.id).exemplar_ids
    if ids is None:
        return None
    return sorted(bench.value("SELECT external_id FROM exemplar WHERE id = :id", id=one) for one in ids.tolist())


def facts(made: MadeByAdmit) -> tuple[Any, ...]:
    """What is said of a snapshot beside its rows."""
    return made.radius, made.singleton_count, made.usable_count, made.largest_kappa


def recalibrated(bench: Bench) -> None:
    """Serve what is due, and see that a calibration from scratch of the same data gives the same rows."""
    ((_, step),) = recalibrate(bench.workspace(), "edge", shell=Computing(bench))
    assert step is not None
    assert step.calibrated is not None
    made = bench.export("edge", Export.CALIBRATION)
    again = bench.calibrate("edge", **EDGE.settings)
    assert again.changed == ChangedRows(closed=0, opened=0)
    assert facts(step.calibrated.by_admit) == facts(again.by_admit)
    assert bench.export("edge", Export.CALIBRATION) == made


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The points that each recalibration computed from what changed looked at."""
    seen: list[list[int]] = []

    def spy(*arguments: Any, **options: Any) -> Any:
        seen.append(arguments[5].tolist())
        return make_again(*arguments, **options)

    monkeypatch.setattr("venn_admit.flows.calibration.calibrate.make_again", spy)
    return seen


@pytest.mark.parametrize("part", ["mc", "vp"])
def test_labels_are_all_that_is_looked_at(edge: Bench, looked_at: list[list[int]], part: str) -> None:
    give(edge, part=part)
    assert changed(edge) == [f"{part}-{row}" for row in range(3)]
    recalibrated(edge)
    assert [len(ids) for ids in looked_at] == [3]
    assert changed(edge) == []


def test_new_data_and_labels_taken_back(edge: Bench, looked_at: list[list[int]]) -> None:
    count = more(edge)
    give(edge, part="mc", rows=range(5))
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("UPDATE exemplar SET split = 'scored' WHERE external_id = 'vp-5'")
    recalibrated(edge)
    assert [len(ids) for ids in looked_at] == [count + 6]


@pytest.mark.usefixtures("all_replace")
def test_training_data_change_the_points_whose_lists_they_join(edge: Bench, looked_at: list[list[int]]) -> None:
    more(edge, "support", split="train")
    recalibrated(edge)
    assert 0 < len(looked_at[0]) < 1000


def test_if_a_snapshot_is_withheld_its_view_is_not_that_of_the_open_points(edge: Bench) -> None:
    more(edge, "support", split="train")
    ((_, step),) = recalibrate(edge.workspace(), "edge", shell=Computing(edge))
    assert step is not None
    assert step.calibrated is not None
    assert step.calibrated.withheld is not None
    assert changed(edge) is None


def test_that_nothing_changed_is_known_without_a_look_at_the_points(
    edge: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[PointChanges] = []
    compare = reports.snapshot_changes

    def noted(connection: Connection, calibration: Calibration) -> PointChanges:
        looks.append(compare(connection, calibration))
        return looks[-1]

    monkeypatch.setattr(reports, "snapshot_changes", noted)
    assert recalibrate(edge.workspace(), "edge", shell=Computing(edge)) == []
    assert looks == []
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("UPDATE snapshot_view SET identity = 'another server'")
    assert recalibrate(edge.workspace(), "edge", shell=Computing(edge)) == []
    assert [found.total for found in looks] == [0]


def test_what_ends_after_the_snapshot_took_its_view_is_left_to_the_next(edge: Bench) -> None:
    with transaction(edge.engine) as late:
        late.exec_driver_sql(
            "UPDATE exemplar SET label = CASE label WHEN 0 THEN 1 ELSE 0 END WHERE external_id = 'mc-9'"
        )
        give(edge)
        for _, step in recalibrate(edge.workspace(), "edge", shell=Computing(edge)):
            assert step is not None
            assert step.calibrated is not None
    assert changed(edge) == ["mc-9"]
    give(edge, shift=2)
    recalibrated(edge)


def test_what_left_and_came_back_is_looked_at(edge: Bench) -> None:
    for split in ("scored", "vp"):
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("UPDATE exemplar SET split = %s WHERE external_id = 'vp-5'", (split,))
    assert changed(edge) == ["vp-5"]


def test_scored_points_are_no_change_before_they_have_a_label(edge: Bench, looked_at: list[list[int]]) -> None:
    edge.score("edge", edge.folder / "score.npz")
    assert edge.value("SELECT count(*) FROM approximation") > 1000
    assert edge.value(LEDGER) == 0
    path = edge.folder / "labels.csv"
    path.write_text("\n".join(["external_id,label", *(f"score-{row},1" for row in range(9))]) + "\n")
    label(edge.engine, "edge", LabelFile(path), selection="random", retract=False)
    recalibrated(edge)
    assert [len(ids) for ids in looked_at] == [9]


def test_other_columns_are_no_change(edge: Bench) -> None:
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("UPDATE exemplar SET attributes = attributes, split = split")
    assert changed(edge) == []


@pytest.mark.usefixtures("all_replace")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE snapshot_view SET identity = 'another server'",
        "UPDATE calibrator SET last_number = last_number + 1",
        "DELETE FROM snapshot_view",
        "UPDATE exemplar SET label = CASE label WHEN 0 THEN 1 ELSE 0 END",  # of more than a thousand
    ],
)
def test_whatever_is_not_known_is_computed_from_scratch(edge: Bench, looked_at: list[list[int]], damage: str) -> None:
    give(edge)
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql(damage)
    assert changed(edge) is None
    recalibrated(edge)
    assert looked_at == []


def test_the_ledger_loses_what_every_setting_has_seen(edge: Bench) -> None:
    edge.calibrate("edge", **EDGE.settings | {"kappa": 7})
    give(edge)
    edge.calibrate("edge", **EDGE.settings)
    assert edge.value(LEDGER) == 3
    edge.calibrate("edge", **EDGE.settings | {"kappa": 7})
    assert edge.value(LEDGER) == 0


def test_a_retired_setting_keeps_no_change_and_begins_from_scratch(edge: Bench) -> None:
    edge.calibrate("edge", **EDGE.settings | {"kappa": 7})
    retire(edge.engine, "edge", 1)
    give(edge)
    recalibrate(edge.workspace(), "edge", shell=Computing(edge))
    assert edge.value(LEDGER) == 0
    assert changed(edge) is None
    edge.calibrate("edge", **EDGE.settings)
    assert changed(edge) == []


def test_a_setting_that_was_never_in_use_keeps_no_change(edge: Bench) -> None:
    edge.calibrate("edge", **EDGE.settings | {"kappa": 7})
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("UPDATE calibration SET state = 'withheld' WHERE calibrator_id <> 1")
    give(edge)
    recalibrated(edge)
    assert edge.value(LEDGER) == 0


def test_a_setting_that_cannot_be_recalibrated_keeps_no_change(edge: Bench) -> None:
    edge.calibrate("edge", **EDGE.settings | {"kappa": 7})
    give(edge)
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql("UPDATE recalibration_request SET error = 'too few' WHERE calibrator_id <> 1")
    edge.calibrate("edge", **EDGE.settings)
    assert edge.value(LEDGER) == 0


def test_a_snapshot_under_way_keeps_the_ledger(edge: Bench) -> None:
    with transaction(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        point_changes.keep(connection, classifier)
        give(edge)
        edge.calibrate("edge", **EDGE.settings)
        assert edge.value(LEDGER) == 3
    edge.calibrate("edge", **EDGE.settings)
    assert edge.value(LEDGER) == 0
