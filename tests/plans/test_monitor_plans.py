"""An update of a monitor reads what is new, however many labels, documents and decisions there are."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from tests.conftest import fresh_database
from tests.plans.plans import add_filled_classifier, explain, read
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import statement

CALIBRATING, SCORED, SIZE = 2_000, 30_000, 3
FIRST_SCORED = 101 + CALIBRATING
# Every exemplar that was decided on is labelled afterwards, by documents of three.
LABELS = f"""
UPDATE exemplar SET label = mod(id, 2), document_id = 'd-' || id / {SIZE} WHERE id >= {FIRST_SCORED};
INSERT INTO label_event (exemplar_id, label, selection, source, created_at)
SELECT id, label, 'random', 'test', now() + interval '1 day' FROM exemplar WHERE id >= {FIRST_SCORED} ORDER BY id;
"""
TABLES = ("label_event", "exemplar", "decision")


@pytest.fixture(scope="module", params=["older statistics", "analysed"])
def engine(request: pytest.FixtureRequest, server_url: str, template_database: str) -> Iterator[Engine]:
    with fresh_database(server_url, template_database) as url:
        found = create_engine(url)
        with transaction(found) as connection:
            for table in TABLES:
                connection.exec_driver_sql(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            if request.param == "older statistics":  # of no decision and no label
                connection.exec_driver_sql("ANALYZE")
            add_filled_classifier(connection, "one", calibrating=CALIBRATING, scored=SCORED, days=10)
            for each in LABELS.split(";\n")[:-1]:
                connection.exec_driver_sql(each)
        if request.param == "analysed":
            with found.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM (ANALYZE)")
        yield found
        found.dispose()


@pytest.mark.parametrize("new", [1, 90])
@pytest.mark.parametrize(
    ("name", "by_decision"),
    [
        ("monitors.first_change", False),
        ("monitors.first_change", True),
        ("monitors.labelled_decisions", False),
        ("deadlines.labelled_decisions", True),
    ],
)
def test_what_is_read_follows_from_what_is_new(engine: Engine, name: str, by_decision: bool, new: int) -> None:
    with connect(engine) as connection:
        newest = connection.execute(text("SELECT max(id) FROM label_event")).scalar_one()
        decided = connection.execute(text("SELECT max(id) FROM decision")).scalar_one()
        after = connection.execute(
            text("SELECT max(id) FROM label_event WHERE exemplar_id < :first"), {"first": FIRST_SCORED}
        ).scalar_one()
        parameters = {
            "classifier_id": 1,
            "calibrator_id": 2,
            "knn_parameters_id": 1,
            "after_event": after,
            "after_decision": 1,
            "settled_event": newest - new,
            "from_event": newest - new,
            "from_decision": decided - new - SIZE,  # the first document may have been decided on before
            "passed_decision": decided,
            "label_deadline": timedelta(days=90),
            "by_decision": by_decision,
        }
        query = str(statement(name))
        nodes = explain(connection, query, parameters, analyze=True)
    assert read(nodes, "label_event") >= new
    documents = new // SIZE + 1
    for table in TABLES:
        # The exemplars of a document are looked up once for each of the labels, and so are an exemplar's two decisions.
        assert read(nodes, table) <= 6 * SIZE * documents, table
    assert not [node for node in nodes if node.get("Relation Name", "").startswith("exemplar_vector")]


@pytest.mark.parametrize("new", [1, 90])
def test_only_later_labels_are_read_to_tell_whether_some_wait(engine: Engine, new: int) -> None:
    with connect(engine) as connection:
        newest = connection.execute(text("SELECT max(id) FROM label_event")).scalar_one()
        query = str(statement("monitors.has_labels_since"))
        for calibrator in (2, 0):  # the latter's classifier has none of them
            parameters = {"event": newest - new, "calibrator_id": calibrator}
            nodes = explain(connection, query, parameters, analyze=True)
            for table in TABLES:
                assert read(nodes, table) <= new, table


@pytest.mark.parametrize("new", [1, 30])
def test_a_labelled_point_is_compared_with_decisions_that_were_made_with_it(engine: Engine, new: int) -> None:
    with connect(engine) as connection:
        events = connection.execute(
            text("SELECT id, exemplar_id FROM label_event ORDER BY id DESC LIMIT :new"), {"new": new}
        ).all()
        parameters = {
            "calibrator_id": 2,
            "knn_parameters_id": 1,
            "exemplar_ids": [event.exemplar_id for event in events],
            "event_ids": [event.id for event in events],
        }
        nodes = explain(connection, str(statement("monitors.points_beside")), parameters, analyze=True)
    assert read(nodes, "decision") >= new
    for table in TABLES:
        # Sixteen decisions, each with those before it on its point and the labels of that.
        assert read(nodes, table) <= 6 * 16 * new, table
