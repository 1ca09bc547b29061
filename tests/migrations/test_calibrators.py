"""Settings and methods of calibration: which is in use, and what only one method has."""

from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError

from tests.migrations.migrating import (
    LATER_CALIBRATOR,
    ROWS,
    assert_replay_equal,
    columns,
    columns_of_before,
    move,
    renamed,
    run_script,
    table_contents,
)
from tests.running import Bench, Golden
from venn_admit.service.errors import DatabaseError
from venn_admit.service.flows.decisions.score import read_scores
from venn_admit.service.store.calibrations import calibrations, calibrators
from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.search.array_cache import ArrayCache
from venn_admit.service.store.work import recalibrations


def test_the_calibrator_calibrated_last_is_the_one_in_use(empty: Engine) -> None:
    """As it was before there was a column to say so."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
        run_script(connection, LATER_CALIBRATOR)
    move(empty, "head")
    with connect(empty) as connection:
        latest = calibrations.latest(connection, classifiers.by_name(connection, "old"))
    assert (latest.settings.kappa, latest.number) == (1, 2)


def test_settings_of_before_are_kept_current_until_retired(empty: Engine) -> None:
    """Whatever was calibrated before there was a column to say otherwise; on the way back, retired ones too."""
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
        run_script(connection, LATER_CALIBRATOR)
    move(empty, "0010")
    old = columns(empty)
    before = table_contents(empty, old)

    move(empty, "head")
    assert table_contents(empty, renamed(old)) == before
    with transaction(empty) as connection:
        classifier = classifiers.by_name(connection, "old")
        in_use, other = calibrators.of_classifier(connection, classifier)
        assert (in_use.id, in_use.retired_at, other.retired_at) == (1, None, None)
        calibrators.retire(connection, other.id)
        assert recalibrations.request(connection, classifier, "labels") == 1
    with transaction(empty) as connection:
        connection.execute(text("DELETE FROM recalibration_request"))

    move(empty, "0010", command.downgrade)
    assert table_contents(empty, old) == before
    move(empty, "head")
    with connect(empty) as connection:
        assert recalibrations.request(connection, classifiers.by_name(connection, "old"), "labels") == 2


@pytest.mark.parametrize(
    ("revision", "before", "asked"),
    [
        ("0017", "0016", {}),
        ("0019", "0018", {"score": "auto"}),
        (
            "0020",
            "0019",
            {"score": "auto", "certify": "{true}", "confidence": "0.9", "document_test": "finite-sample"},
        ),
    ],
    ids=["0017", "0019", "0020"],
)
def test_calibrations_by_another_method_have_no_way_back(
    empty: Engine, revision: str, before: str, asked: dict[str, str]
) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, revision)
    with transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(asked))
    with pytest.raises(ProgrammingError, match="which an older schema cannot hold"):
        move(empty, before, command.downgrade)
    assert schema.current_revision(empty) == revision


def calibrator_by_abers(asked: dict[str, str]) -> str:
    """A statement that adds a calibrator of the method venn-abers."""
    names = "".join(f", {name}" for name in asked)
    values = "".join(f", '{value}'" for value in asked.values())
    return (
        "INSERT INTO venn_admit.calibrator "
        f"(classifier_id, settings_digest, method, alpha, bin_edges, thresholds{names}) "
        f"VALUES (1, '', 'venn-abers', 0.1, '{{0}}', '{{0.9,0.9}}'{values})"
    )


CERTIFIED = {"score": "auto", "certify": "{true}", "confidence": "0.9", "document_test": "asymptotic"}


@pytest.mark.parametrize(
    ("asked", "check"),
    [
        (CERTIFIED | {"certify": "{each}"}, "certify"),
        (CERTIFIED | {"certify": "{true,predicted}"}, "certify"),
        (CERTIFIED | {"confidence": "1"}, "confidence"),
        (CERTIFIED | {"document_test": "t"}, "document_test"),
        ({"score": "auto", "confidence": "0.9"}, "certification"),
        ({"score": "auto", "certify": "{true}"}, "certification"),
    ],
)
def test_a_certificate_is_asked_for_in_full_or_not_at_all(empty: Engine, asked: dict[str, str], check: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0020")
    with pytest.raises(DatabaseError, match=f"calibrator_{check}_check"), transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(asked))
    with transaction(empty) as connection:
        run_script(connection, calibrator_by_abers(CERTIFIED))
    for wrong in ("method = 'venn-admit', score = NULL, delta = 1, kappa = 1", "thresholds = '{0.95,0.9}'"):
        with pytest.raises(DatabaseError, match="calibrator_certification_check"), transaction(empty) as connection:
            connection.execute(text(f"UPDATE calibrator SET {wrong} WHERE certify IS NOT NULL"))


def test_points_name_the_method_of_their_calibrator(engine: Engine, tmp_path: Path) -> None:
    """Those of before too, and only vp of venn-admit has ADMIT sets."""
    bench, golden = Bench(engine, tmp_path), Golden("edge")
    golden.prepare(bench, "edge")
    bench.calibrate("edge", **golden.settings)
    bench.calibrate_abers("edge", score="network")
    path = bench.write("score.npz", golden.exemplars("score"))
    scores = bench.score("edge", path, weighted=False)
    now, exported = columns_of_before(engine), scores.table
    before = table_contents(engine, now)

    move(engine, "0019", command.downgrade)
    move(engine, "head")
    assert table_contents(engine, now) == before
    per_method = "SELECT method, split, count(*), count(admit_set) FROM calibration_point GROUP BY 1, 2 ORDER BY 1, 2"
    mc, vp = len(golden["mc_y"]), len(golden["vp_y"])
    assert [tuple(row) for row in bench.rows(per_method)] == [
        ("venn-abers", "mc", mc, 0),
        ("venn-admit", "mc", mc, 0),
        ("venn-admit", "vp", vp, vp),
    ]
    assert read_scores(engine, scores.request.job_id).equals(exported)
    assert_replay_equal(engine, ArrayCache(tmp_path / "other"), [bench.value("SELECT max(id) FROM decision")])
    for wrong, rule in (
        ("method = 'venn-abers' WHERE split = 'mc' AND method = 'venn-admit'", "calibrator_id_fkey"),
        ("admit_set = NULL WHERE split = 'vp'", "admit_set_check"),
        ("admit_set = '111' WHERE split = 'mc'", "admit_set_check"),
        ("split = 'vp', admit_set = '111' WHERE method = 'venn-abers'", "admit_set_check"),
    ):
        with pytest.raises(DatabaseError, match=f"calibration_point_{rule}"), transaction(engine) as connection:
            connection.execute(text(f"UPDATE calibration_point SET {wrong}"))
    bench.calibrate_abers("edge", score="network", certify=("true",))
    assert ("venn-abers", "vp", vp, 0) in [tuple(row) for row in bench.rows(per_method)]


@pytest.mark.parametrize("wrong", ["delta = NULL", "kappa = NULL", "method = 'other'", "method = 'venn-abers'"])
def test_band_settings_belong_to_one_method(empty: Engine, wrong: str) -> None:
    move(empty, "0004")
    with transaction(empty) as connection:
        run_script(connection, ROWS)
    move(empty, "0017")
    with pytest.raises(DatabaseError, match=r"calibrator_(method|venn_admit)_check"), transaction(empty) as connection:
        connection.execute(text(f"UPDATE calibrator SET {wrong}"))
