"""A member of the service's role does all daily work, and changes neither tables nor what was recorded once."""

import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from tests.conftest import administration
from tests.roles import RELATIONS, as_role
from tests.running import Bench, Golden
from venn_admit.errors import DatabaseError
from venn_admit.files.label_sources import LabelFile
from venn_admit.flows.data.label import label
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.store.database.engine import transaction
from venn_admit.store.database.schema import Group, grant

# What a member of the role changes rows of: every table except these.
ONLY_READ = {"venn_admit.alembic_version"}
ONLY_ADDED_TO = {"venn_admit.audit_event", "venn_admit.forgotten_exemplar", "venn_admit.label_event"}
NEVER_CHANGED = {"venn_admit.calibration_use", "venn_admit.certificate_look"}

OF_COLUMNS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")

DENIED = "permission denied|must be owner"
KEEPS_CLASSIFIERS = {
    "mark a deletion": ("UPDATE classifier SET deleting_since = now()", DENIED),
    "add a classifier that is being deleted": (
        "INSERT INTO classifier (name, class_names, knn_share, mc_share, seed, deleting_since) "
        "VALUES ('bait', '{a,b}', 0, 0.5, 0, now())",
        DENIED,
    ),
    "delete a classifier without an event": ("DELETE FROM classifier", "is not being deleted"),
    "drop vectors": ("SELECT drop_vector_partitions_v1(id) FROM classifier", "is not being deleted"),
    "take the place of vectors to come": ("SELECT create_vector_partitions_v2(1000, 2)", "no classifier 1000"),
    "make vectors of another length": ("SELECT create_vector_partitions_v2(1, 3000)", "no classifier 1 with dimension"),
    "replace the function": (
        "CREATE OR REPLACE FUNCTION forget_label_events_v1(exemplar_ids bigint[]) RETURNS bigint LANGUAGE sql "
        "AS 'SELECT 0::bigint'",
        DENIED,
    ),
    "change what it checks": ("ALTER FUNCTION drop_vector_partitions_v1(integer) SECURITY INVOKER", DENIED),
}
KEEPS_LABELS = {
    "number of a label": (
        "INSERT INTO label_event (id, exemplar_id, selection, source) OVERRIDING SYSTEM VALUE "
        "SELECT 1000000, min(id), 'random', '' FROM exemplar",
        DENIED,
    ),
    "time of a label": (
        "INSERT INTO label_event (exemplar_id, selection, source, created_at) "
        "SELECT min(id), 'random', '', '2000-01-01' FROM exemplar",
        DENIED,
    ),
    "change a label": ("UPDATE label_event SET label = 0", DENIED),
    "remove a label": ("DELETE FROM label_event", DENIED),
    "remove all labels": ("TRUNCATE label_event", DENIED),
    "remove an exemplar with its labels": ("DELETE FROM exemplar", "violates foreign key"),
    "take the id of what is forgotten": ("UPDATE exemplar SET external_id = 'mc-1'", DENIED),
    "move to what is being deleted": ("UPDATE exemplar SET classifier_id = 1", DENIED),
    "take the key of another": ("UPDATE exemplar SET id = -id", DENIED),
}
KEEPS_TOMBSTONES = {
    "time of a tombstone": (
        "INSERT INTO forgotten_exemplar (digest, created_at) VALUES (sha256('x'), '2000-01-01')",
        DENIED,
    ),
    "change a tombstone": ("UPDATE forgotten_exemplar SET created_at = now()", DENIED),
    "remove a tombstone": ("DELETE FROM forgotten_exemplar", DENIED),
    "make tombstones meaningless": ("UPDATE classifier SET salt = NULL", DENIED),
}
KEEPS_USES = {
    "time of a use": (
        "INSERT INTO calibration_use (classifier_id, calibrator_id, calibration_id, reason, created_at) "
        "VALUES (1, 1, 1, '', '2000-01-01')",
        DENIED,
    ),
    "change a use": ("UPDATE calibration_use SET reason = ''", DENIED),
    "change what looked at labels": ("UPDATE certificate_look SET confidence = 0.999", DENIED),
}
KEEPS_EVENTS = {
    "number of an event": (
        "INSERT INTO audit_event (id, origin, action, is_replay) OVERRIDING SYSTEM VALUE "
        "VALUES (1000000, 'http', 'create_key', FALSE)",
        DENIED,
    ),
    "number of an event, copied": ("COPY audit_event (id, origin, action, is_replay) FROM STDIN", DENIED),
    "time of an event": (
        "INSERT INTO audit_event (origin, action, is_replay, created_at) "
        "VALUES ('http', 'create_key', FALSE, '2000-01-01')",
        DENIED,
    ),
    "change an event": ("UPDATE audit_event SET status = 200", DENIED),
    "remove an event": ("DELETE FROM audit_event", DENIED),
    "remove all events": ("TRUNCATE audit_event", DENIED),
    "number of the next event": ("SELECT setval('audit_event_id_seq', 1)", DENIED),
    "start numbers again": ("ALTER SEQUENCE audit_event_id_seq RESTART", DENIED),
    "drop the default": ("ALTER TABLE audit_event ALTER created_at DROP DEFAULT", DENIED),
    "discard events to come": ("CREATE RULE silent AS ON INSERT TO audit_event DO INSTEAD NOTHING", DENIED),
    "have events changed": (
        "CREATE TRIGGER changed BEFORE INSERT ON audit_event EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        DENIED,
    ),
    "skip triggers and references": ("SET session_replication_role = replica", DENIED),
    "rename the key of an event": ("UPDATE api_key SET name = 'somebody else'", DENIED),
    "run a program on the server": ("COPY audit_event TO PROGRAM 'true'", DENIED),
    "grant the rights of the service": ("SELECT grant_service_v3('postgres')", DENIED),
}
ATTACKS = KEEPS_CLASSIFIERS | KEEPS_LABELS | KEEPS_TOMBSTONES | KEEPS_USES | KEEPS_EVENTS


@pytest.fixture(scope="module")
def owner(shared_engine: Engine) -> Engine:
    return shared_engine


@pytest.fixture(scope="module")
def bench(owner: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench that works as a member, who was made one twice."""
    role = f"service {uuid.uuid4().hex[:12]}"
    with administration(owner.url.render_as_string(hide_password=False)) as execute:
        execute(f'CREATE ROLE "{role}"')
        grant(owner, Group.SERVICE, role)
        grant(owner, Group.SERVICE, role)
        engine = as_role(owner, role)
        yield Bench(engine, tmp_path_factory.mktemp("service"))
        engine.dispose()
        execute(f'DROP ROLE "{role}"')


def refused(engine: Engine, statement: str, words: str = DENIED) -> None:
    with pytest.raises(DatabaseError, match=words), transaction(engine) as connection:
        connection.execute(text(statement))


@pytest.fixture(scope="module")
def worked(bench: Bench) -> Bench:
    """The bench after all daily work, whichever tests of this file are the first to run."""
    golden = Golden("edge")
    golden.prepare(bench, "edge")
    path = bench.write("score.npz", golden.exemplars("score"))
    labels = bench.folder / "labels.csv"
    labels.write_text("external_id,label\n" + "".join(f"score-{row},0\n" for row in range(20)))
    settings = golden.settings
    first = bench.calibrate("edge", **settings)
    bench.score("edge", path, calibration_id=first.calibration_id)
    certified = bench.calibrate_abers("edge", score="network", certify=("predicted",))
    bench.score("edge", path, calibration_id=certified.calibration_id, weighted=False)
    label(bench.engine, "edge", LabelFile(labels), selection="random", retract=False)
    assert bench.calibrate("edge", **settings).calibration_id > first.calibration_id
    update_monitor(bench.engine, "edge")
    return bench


def test_all_daily_work_is_done_by_a_member(worked: Bench) -> None:
    for row in worked.rows("SELECT min(id) AS id FROM decision GROUP BY calibration_id"):
        assert replay(worked.workspace(), row.id).differing == ()


def test_a_member_writes_rows_of_every_table_but_the_schema_revision_and_the_past_of_the_ledger(bench: Bench) -> None:
    for row in bench.rows(RELATIONS):
        allowed = {
            kind
            for kind in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
            if row.relkind != "S"
            and bench.value(
                f"SELECT {'has_any_column_privilege' if kind in OF_COLUMNS else 'has_table_privilege'}"
                "(current_user, :relation, :kind)",
                relation=row.name,
                kind=kind,
            )
        }
        if row.relkind == "S":
            wanted = set[str]()
        elif row.schema == "report" or row.name in ONLY_READ:
            wanted = {"SELECT"}
        elif row.name in ONLY_ADDED_TO:
            wanted = {"SELECT", "INSERT"}
        elif row.name in NEVER_CHANGED:
            wanted = {"SELECT", "INSERT", "DELETE"}
        else:
            wanted = {"SELECT", "INSERT", "UPDATE", "DELETE"}
        assert allowed == wanted, row.name


def test_a_member_may_vacuum_where_that_can_be_granted(bench: Bench) -> None:
    if bench.value("SELECT current_setting('server_version_num')::int") >= 170000:
        maintained = "has_table_privilege(current_user, oid, 'MAINTAIN')"
        rows = bench.rows(
            f"SELECT relname FROM pg_class WHERE relnamespace = 'venn_admit'::regnamespace AND {maintained}"
        )
        assert [row.relname for row in rows] == ["calibration_point"]


def test_a_member_changes_no_table(bench: Bench) -> None:
    for row in bench.rows(RELATIONS):
        if row.relkind in "rp":
            refused(bench.engine, f"ALTER TABLE {row.name} ADD COLUMN mine integer")
            refused(bench.engine, f"DROP TABLE {row.name}")
    for schema in ("report", "public", "venn_admit"):
        refused(bench.engine, f"CREATE TABLE {schema}.mine (id integer)")
    refused(bench.engine, "UPDATE venn_admit.alembic_version SET version_num = '0001'")


@pytest.mark.parametrize(("statement", "words"), ATTACKS.values(), ids=ATTACKS)
def test_a_member_is_refused(worked: Bench, statement: str, words: str) -> None:
    refused(worked.engine, statement, words)


def test_a_member_removes_labels_only_together_with_their_exemplar(worked: Bench) -> None:
    count = worked.value("SELECT count(*) FROM label_event")
    assert worked.value("SELECT forget_label_events_v1(array_agg(id)) FROM exemplar") == 0
    done = forget(worked.workspace(chunk_rows=100), "edge", ["mc-1", "train-1"])
    assert done.rows["label_event"] == 2
    assert worked.value("SELECT count(*) FROM label_event") == count - 2
    assert worked.value("SELECT count(*) FROM forgotten_exemplar") == 2
    for job_id in done.jobs:
        worked.run(job_id)


def test_a_member_deletes_a_classifier(worked: Bench) -> None:
    found = worked.value("SELECT id FROM classifier")
    events = "SELECT count(*) FROM audit_event WHERE action = 'delete_classifier' AND target = 'edge'"
    assert worked.value(events) == 0
    with transaction(worked.engine) as connection:
        # As an attacker begins it: what remains is an event and a classifier that cannot be used.
        connection.execute(text(f"SELECT begin_deletion_v1('{{{found}}}', 'http', NULL, NULL)"))
    assert worked.value(events) == 1
    refused(worked.engine, "UPDATE classifier SET deleting_since = NULL")
    assert delete(worked.workspace(), "edge").rows["label_event"]
    assert worked.value(events) == 1, "it was begun before"
    assert worked.value("SELECT count(*) FROM label_event") == 0
    assert worked.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'exemplar_vector_1%'") == 0


def test_what_is_added_later_can_be_used_too(owner: Engine, bench: Bench) -> None:
    with transaction(owner) as connection:
        connection.execute(text("CREATE TABLE venn_admit.later (id integer GENERATED ALWAYS AS IDENTITY)"))
    with transaction(bench.engine) as connection:
        connection.execute(text("INSERT INTO venn_admit.later DEFAULT VALUES"))
    with transaction(owner) as connection:
        connection.execute(text("DROP TABLE venn_admit.later"))


def test_partitions_are_made_for_members_only(owner: Engine) -> None:
    """The function that makes them has the owner's rights."""
    role = f"stranger_{uuid.uuid4().hex[:12]}"
    with administration(owner.url.render_as_string(hide_password=False)) as execute:
        execute(f"CREATE ROLE {role}")
        execute(f"GRANT USAGE ON SCHEMA venn_admit TO {role}")
        try:
            stranger = as_role(owner, role)
            refused(stranger, "SELECT venn_admit.create_vector_partitions_v2(7, 2)")
            stranger.dispose()
        finally:
            execute(f"REVOKE ALL ON SCHEMA venn_admit FROM {role}")
            execute(f"DROP ROLE {role}")
