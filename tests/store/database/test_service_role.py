"""A member of the service's role does all daily work, and changes neither tables nor what was recorded once."""

import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from tests.conftest import administration
from tests.roles import RELATIONS, as_role
from tests.running import Bench, Golden
from venn_admit.service.errors import DatabaseError
from venn_admit.service.files.label_sources import LabelFile
from venn_admit.service.flows.decisions.replay import replay
from venn_admit.service.flows.exemplars.label import label
from venn_admit.service.flows.monitoring.monitor import update_monitor
from venn_admit.service.flows.removal.delete import delete
from venn_admit.service.flows.removal.forget import forget
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.database.roles import Group, grant

# What a member of the role changes rows of: every table except these.
ONLY_READ = {"venn_admit.alembic_version"}
ONLY_ADDED_TO = {"venn_admit.audit_event", "venn_admit.forgotten_exemplar", "venn_admit.label_event"}


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


def refused(engine: Engine, statement: str, words: str = "permission denied|must be owner") -> None:
    with pytest.raises(DatabaseError, match=words), transaction(engine) as connection:
        connection.execute(text(statement))


def test_all_daily_work_is_done_by_a_member(bench: Bench) -> None:
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
    for row in bench.rows("SELECT min(id) AS id FROM decision GROUP BY calibration_id"):
        assert replay(bench.engine, bench.cache, row.id).differing == ()


def test_a_member_writes_rows_of_every_table_but_the_schema_revision_and_the_past_of_the_ledger(bench: Bench) -> None:
    for row in bench.rows(RELATIONS):
        allowed = {
            kind
            for kind in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
            if row.relkind != "S"
            and bench.value("SELECT has_table_privilege(current_user, :relation, :kind)", relation=row.name, kind=kind)
        }
        if row.relkind == "S":
            wanted = set[str]()
        elif row.schema == "report" or row.name in ONLY_READ:
            wanted = {"SELECT"}
        elif row.name in ONLY_ADDED_TO:
            wanted = {"SELECT", "INSERT"}
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
    refused(bench.engine, "UPDATE venn_admit.label_event SET label = 0")
    refused(bench.engine, "UPDATE venn_admit.audit_event SET status = 200")
    refused(bench.engine, "DELETE FROM venn_admit.audit_event")
    refused(bench.engine, "DELETE FROM venn_admit.label_event")
    refused(bench.engine, "DELETE FROM venn_admit.forgotten_exemplar")
    refused(bench.engine, "SELECT venn_admit.grant_service_v1('postgres')")
    refused(bench.engine, "SELECT venn_admit.drop_vector_partitions_v1(1)", "is not being deleted")


def test_a_member_removes_labels_only_together_with_their_exemplar(bench: Bench) -> None:
    count = bench.value("SELECT count(*) FROM label_event")
    assert bench.value("SELECT forget_label_events_v1(array_agg(id)) FROM exemplar") == 0
    done = forget(bench.engine, bench.cache, "edge", ["mc-1", "train-1"], chunk_rows=100)
    assert done.rows["label_event"] == 2
    assert bench.value("SELECT count(*) FROM label_event") == count - 2
    assert bench.value("SELECT count(*) FROM forgotten_exemplar") == 2
    for job_id in done.jobs:
        bench.run(job_id)


def test_a_member_deletes_a_classifier(bench: Bench) -> None:
    assert delete(bench.engine, bench.cache, "edge").rows["label_event"]
    assert bench.value("SELECT count(*) FROM label_event") == 0
    assert bench.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'exemplar_vector_1%'") == 0


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
