"""What an old snapshot leaves is looked up, however many snapshots and jobs there are."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from tests.plans.plans import explain, filled_engine, read
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect
from venn_admit.store.database.statements import statement

SNAPSHOTS, JOBS, POINTS = 5_000, 20_000, 200
FILL = (
    "INSERT INTO classifier (name, class_names, dimension, neighbour_count, knn_share, mc_share, seed)"
    " VALUES ('quiet', '{no,yes}', 2, 1, 0.1, 0.45, 0), ('busy', '{no,yes}', 2, 1, 0.1, 0.45, 0)",
    "INSERT INTO calibrator (classifier_id, settings_digest, method, alpha, bin_edges, thresholds, score)"
    " SELECT n, 'd', 'venn-abers', 0.1, '{0}', '{1,1}', 'network' FROM generate_series(1, 2) AS n",
    "INSERT INTO standing_chain (calibrator_id, number, score, proposing, chain)"
    " SELECT n, 1, 'network', 1, '{}' FROM generate_series(1, 2) AS n",
    "INSERT INTO calibration (calibrator_id, number, mc_count, vp_count, reason, state)"
    f" SELECT CASE WHEN n = 1 THEN 1 ELSE 2 END, n, 1, 1, 'test', 'retired' FROM generate_series(1, {SNAPSHOTS}) AS n",
    "INSERT INTO certificate (calibration_id, documents, document, chain_id)"
    " SELECT id, 1, '{}', calibrator_id FROM calibration",
    "INSERT INTO job"
    " (classifier_id, kind, state, calibration_id, weighted, require_full_match, row_count, finished_at)"
    f" SELECT 2, 'score', 'done', {SNAPSHOTS // 2} + mod(n, {SNAPSHOTS // 2}), FALSE, FALSE, 1, now()"
    f" FROM generate_series(1, {JOBS}) AS n",
    "INSERT INTO exemplar"
    " (classifier_id, external_id, split, network_logits, network_predicted, label, content_digest)"
    f" SELECT 2, n, 'mc', '{{0,1}}', 1, 1, decode(md5(n::text), 'hex') FROM generate_series(1, {POINTS}) AS n",
    "INSERT INTO calibration_point"
    " (calibrator_id, exemplar_id, valid_from, valid_until, split, label, predicted, bin, score, method)"
    f" SELECT 2, id, 1, CASE WHEN mod(id, 2) = 0 THEN {SNAPSHOTS} END, 'mc', 1, 1, 0, 0.5, 'venn-abers' FROM exemplar",
)


@pytest.fixture(scope="module", params=["without statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with filled_engine(server_url, template_database, FILL, analysed=request.param == "analysed") as found:
        yield found


def test_the_newest_snapshot_of_a_chain(engine: Engine) -> None:
    query = str(statement("chains.newest_calibration"))
    with connect(engine) as connection:
        assert connection.execute(text(query), {"chain_id": 1}).scalar() == 1
        assert read(explain(connection, query, {"chain_id": 1}, analyze=True), "certificate") <= 2


def test_revisions_that_caches_hold(engine: Engine) -> None:
    with connect(engine) as connection:
        revisions = list(
            connection.execute(text("SELECT revision FROM calibration ORDER BY id DESC LIMIT 3")).scalars()
        )
        query = str(statement("forgotten.used_revisions"))
        assert read(explain(connection, query, {"revisions": revisions}, analyze=True), "calibration") <= 6


def test_a_check_of_all_snapshots_counts_their_points_once(engine: Engine) -> None:
    query = str(statement("checks.snapshots"))
    with connect(engine) as connection:
        held = {row.id: row.mc_held for row in connection.execute(text(query), {"classifier_id": 2})}
        assert held == dict.fromkeys(range(2, SNAPSHOTS), POINTS) | {SNAPSHOTS: POINTS // 2}
        assert read(explain(connection, query, {"classifier_id": 2}, analyze=True), "calibration_point") <= 4 * POINTS


def test_old_ones_are_deleted_by_look_ups(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrations, "DELETED_AT_ONCE", 100)
    rows_read = text("SELECT pg_stat_get_xact_tuples_returned('job'::regclass)")
    with connect(engine) as connection:
        before = connection.execute(rows_read).scalar_one()
        calibrations.delete_old(connection, 2, keep=10)
        assert connection.execute(text("SELECT count(*) FROM calibration")).scalar() == SNAPSHOTS - 100
        assert connection.execute(rows_read).scalar_one() - before < JOBS
        connection.rollback()
