"""The check of a database finds every kind of damage that was done to it, and nothing in one that is whole."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from tests.conftest import fresh_engine
from tests.running import EXAMPLES, Bench, workspace
from venn_admit.flows.calibration.fit import request_fit
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports.check import Damage, check_database
from venn_admit.store.database import tables
from venn_admit.store.database.engine import create_engine, transaction

# What is done to the database, with foreign keys out of force as after a restore that failed, and what is found then.
DAMAGES = {
    "a deleted version": ("DELETE FROM alembic_version", Damage.SCHEMA_REVISION, None),
    "a dropped table": ("DROP TABLE idempotent_lease, idempotent_request", Damage.SCHEMA_DIFFERS, 3),
    "a dropped index": ("DROP INDEX neighbours_neighbour_ids_idx", Damage.SCHEMA_DIFFERS, 1),
    "a dropped primary key": ("ALTER TABLE review_label DROP CONSTRAINT review_label_pkey", Damage.SCHEMA_DIFFERS, 1),
    "a dropped rule": ("ALTER TABLE job DROP CONSTRAINT job_kind_check", Damage.SCHEMA_DIFFERS, 1),
    "an index that is not valid": (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'neighbours_neighbour_ids_idx'::regclass",
        Damage.RELATION_UNUSABLE,
        1,
    ),
    "a sequence from the beginning": (
        "SELECT setval(pg_get_serial_sequence('label_event', 'id'), 5)",
        Damage.SEQUENCE_BEHIND,
        1,
    ),
    "a dropped partition": ("DROP TABLE exemplar_vector_1_held_out", Damage.PARTITION_MISSING, 1),
    "truncated training vectors": ("TRUNCATE exemplar_vector_1_support", Damage.VECTOR_MISSING, 600),
    "deleted vectors": (
        "DELETE FROM exemplar_vector WHERE NOT support AND exemplar_id % 100 = 0",
        Damage.VECTOR_MISSING,
        None,
    ),
    "a vector on the wrong side": (
        "UPDATE exemplar_vector SET support = false WHERE exemplar_id ="
        " (SELECT min(exemplar_id) FROM exemplar_vector WHERE support)",
        Damage.VECTOR_MISPLACED,
        1,
    ),
    "a deleted exemplar": (
        "DELETE FROM exemplar WHERE id = (SELECT max(id) FROM exemplar WHERE split = 'scored')",
        Damage.VECTOR_UNOWNED,
        1,
    ),
    "a changed number": (
        "UPDATE exemplar_vector SET vector = l2_normalize(vector) WHERE exemplar_id ="
        " (SELECT min(exemplar_id) FROM exemplar_vector WHERE NOT support)",
        Damage.CONTENT_DIFFERS,
        1,
    ),
    "a deleted label event": (
        "DELETE FROM label_event WHERE id = (SELECT min(id) FROM label_event)",
        Damage.LABEL_DIFFERS,
        1,
    ),
    "truncated neighbour lists": ("TRUNCATE neighbours", Damage.NEIGHBOURS_MISSING, None),
    "a list cut short": (
        "UPDATE neighbours SET neighbour_ids = trim_array(neighbour_ids, 1), distances = trim_array(distances, 1)"
        " WHERE exemplar_id = (SELECT min(exemplar_id) FROM neighbours)",
        Damage.NEIGHBOURS_INCOMPLETE,
        1,
    ),
    "a list of others": (
        "UPDATE neighbours SET neighbour_ids[3] = -1 WHERE exemplar_id = (SELECT min(exemplar_id) FROM neighbours)",
        Damage.NEIGHBOURS_INCOMPLETE,
        1,
    ),
    "a deleted calibration point": (
        "DELETE FROM calibration_point WHERE split = 'vp' AND exemplar_id ="
        " (SELECT max(exemplar_id) FROM calibration_point WHERE split = 'vp')",
        Damage.SNAPSHOT_INCOMPLETE,
        1,
    ),
    "a truncated radius": ("TRUNCATE band_radius", Damage.SNAPSHOT_INCOMPLETE, 1),
    "truncated steps": ("TRUNCATE venn_abers_step", Damage.SNAPSHOT_INCOMPLETE, 1),
    "truncated evidence": ("TRUNCATE admit_evidence", Damage.EVIDENCE_MISSING, 200),
    "deleted rows of a job": ("DELETE FROM job_row WHERE row_number = 7", Damage.JOB_INCOMPLETE, None),
    "deleted chunks": ("DELETE FROM job_chunk WHERE ordinal = 0", Damage.JOB_INCOMPLETE, None),
    "truncated decisions": ("TRUNCATE decision CASCADE", Damage.JOB_INCOMPLETE, 1),
}


@pytest.fixture(scope="module")
def template(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database that is whole, that nobody is connected to."""
    with fresh_engine(server_url, template_database) as engine:
        fill(Bench(engine, tmp_path_factory.mktemp("whole")))
        engine.dispose()
        yield engine.url.database or ""


@pytest.fixture
def whole(server_url: str, template: str, tmp_path: Path) -> Iterator[Bench]:
    """A copy for the test alone."""
    with fresh_engine(server_url, template) as engine:
        yield Bench(engine, tmp_path)


def fill(bench: Bench) -> None:
    """A classifier of the bundled data with snapshots of both methods and decisions by one."""
    with np.load(EXAMPLES / "train.npz") as train, np.load(EXAMPLES / "valid.npz") as valid:
        parts = {
            "train": {key: train[key][:600] for key in "rfy"},
            "held-out": {key: valid[key][:1500] for key in "rfy"},
            "score": {key: valid[key][1500:1700] for key in "rfy"},
        }
    bench.create("reviews", dimension=128)
    for part in ("train", "held-out"):
        bench.ingest("reviews", bench.write(f"{part}.npz", parts[part]), part)
    bench.adopt("reviews")
    bench.calibrate_abers("reviews", score="network")
    bench.calibrate("reviews", kappa=10)
    bench.score("reviews", bench.write("score.npz", parts["score"]))


def test_a_whole_database_has_no_damage(whole: Bench) -> None:
    checks = check_database(whole.workspace())
    assert [one.found for one in checks] == [()] * len(checks)
    rows = {one.what: one.rows for one in checks}
    assert rows["vectors"] == rows["contents by their digests"] == rows["labels by the ledger"] == 2300
    assert (rows["decisions"], rows["snapshots"]) == (200, 2)
    assert rows["neighbour lists"] == rows["approximations by their neighbour lists"] > 1000
    small = check_database(whole.workspace(memory_budget=1 << 20))
    assert small == checks


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_found(whole: Bench, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    damaging, damage, count = DAMAGES[what]
    if damage is not Damage.SCHEMA_DIFFERS:  # Alembic reads the whole schema, which takes as long as all other checks
        monkeypatch.setattr(tables, "differences", lambda _: [])
    with transaction(whole.engine) as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text(damaging))
    found = {one.damage: one for check in check_database(whole.workspace()) for one in check.found}
    assert damage in found, found
    assert found[damage].count == count or count is None
    assert found[damage].first
    assert found[damage].damage.meaning
    if damage not in {Damage.SCHEMA_REVISION, Damage.SCHEMA_DIFFERS}:
        assert {None, "reviews"} >= {one.classifier for one in found.values()}


@pytest.mark.parametrize(
    ("change", "first"),
    [
        # The server gives no keys any more.
        ("ALTER COLUMN id DROP IDENTITY", "differs in default venn_admit.label_event.id"),
        (
            "DROP CONSTRAINT label_event_exemplar_id_fkey",
            "lacks foreign key venn_admit.label_event (exemplar_id)",
        ),
    ],
)
def test_what_differs_is_named(whole: Bench, change: str, first: str) -> None:
    with transaction(whole.engine) as connection:
        connection.execute(text(f"ALTER TABLE label_event {change}"))
    (checked,) = check_database(whole.workspace())
    assert [one.first for one in checked.found] == [first]


def test_what_was_forgotten_is_no_damage(whole: Bench) -> None:
    """One that trains, one that calibrates and one that was scored; before the lists are searched again, and after."""
    ids = [
        whole.value("SELECT min(external_id) FROM exemplar WHERE split = :split", split=split)
        for split in ("train", "vp", "scored")
    ]
    done = forget(whole.workspace(chunk_rows=100), "reviews", ids)
    assert not [one for check in check_database(whole.workspace()) for one in check.found]
    for job_id in done.jobs:
        whole.run(job_id)
    assert not [one for check in check_database(whole.workspace()) for one in check.found]


def test_what_was_forgotten_may_have_had_several_rows_of_a_job(whole: Bench) -> None:
    with np.load(EXAMPLES / "valid.npz") as valid:
        twice = {key: valid[key][[1700, 1701, 1701, 1701]] for key in "rfy"} | {"id": np.array(list("abbb"))}
    scored = whole.score("reviews", whole.write("twice.npz", twice)).request
    rows = "SELECT count(*) FROM job_row WHERE job_id = :job_id"
    assert whole.value(rows, job_id=scored.job_id) == 4
    forget(whole.workspace(chunk_rows=100), "reviews", ["b"])
    assert whole.value(rows, job_id=scored.job_id) == 1
    assert not [one for check in check_database(whole.workspace()) for one in check.found]


def test_a_job_that_fits_is_no_damage(whole: Bench) -> None:
    """It has chunks that find neighbours, and the last one, over rows of its own."""
    with transaction(whole.engine) as connection:
        connection.execute(
            text("DELETE FROM neighbours USING exemplar WHERE exemplar_id = exemplar.id AND split IN ('knn', 'vp')")
        )
    job_id = request_fit(whole.workspace(chunk_rows=100), "reviews").job_id
    chunks = whole.rows("SELECT is_last FROM job_chunk WHERE job_id = :job_id", job_id=job_id)
    assert {chunk.is_last for chunk in chunks} == {False, True}
    assert not [one for check in check_database(whole.workspace()) for one in check.found]


def test_what_a_deletion_has_removed_so_far_is_no_damage(whole: Bench) -> None:
    with transaction(whole.engine) as connection:
        connection.execute(text("UPDATE classifier SET deleting_since = now()"))
        connection.execute(text("DROP TABLE exemplar_vector_1_held_out, exemplar_vector_1_support"))
    assert not [one for check in check_database(whole.workspace()) for one in check.found]


def test_it_writes_nothing(whole: Bench) -> None:
    """A session that may not write is enough."""
    url = whole.engine.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    engine = create_engine(url.render_as_string(hide_password=False))
    try:
        assert not [one for check in check_database(workspace(engine)) for one in check.found]
    finally:
        engine.dispose()


def test_a_database_without_a_schema_is_told(bench: Bench) -> None:
    with transaction(bench.engine) as connection:
        connection.execute(text("DROP SCHEMA venn_admit CASCADE"))
    (check,) = check_database(bench.workspace())
    assert check.found[0].damage is Damage.SCHEMA_REVISION
