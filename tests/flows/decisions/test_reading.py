"""What only reads needs no more than the right to read, on a server that takes no writes."""

import uuid
from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.flows.recalibration import QUIET, Due, age, give
from tests.running import Bench, workspace
from venn_admit.core.split_names import Split
from venn_admit.flows.data.catalogue import list_calibrations, list_classifiers, show
from venn_admit.flows.data.export import Export, export
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.reports.report import report
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view, create_engine
from venn_admit.store.exemplars import classifiers


@pytest.fixture
def reader(edge: Bench) -> Iterator[Engine]:
    """An engine whose sessions may read our tables and write nothing, as on a standby."""
    role = f"venn_admit_reader_{uuid.uuid4().hex[:12]}"
    with edge.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role}")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA venn_admit TO {role}")
        connection.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA venn_admit TO {role}")
    url = edge.engine.url.update_query_dict({"options": f"-c role={role} -c default_transaction_read_only=on"})
    engine = create_engine(url.render_as_string(hide_password=False))
    yield engine
    engine.dispose()
    with edge.engine.begin() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")


def test_reports_and_decisions_need_no_right_to_write(edge: Bench, reader: Engine) -> None:
    scored = edge.score("edge", edge.folder / "score.npz")
    shown = report(workspace(reader, edge.cache), "edge", calibration_id=None)
    assert shown.snapshot.id == scored.request.calibration_id

    with np.load(edge.folder / "score.npz") as arrays:
        vectors = arrays["r"].astype(np.float32)
    decisions = [
        PointScorer(workspace(reader, edge.cache)).score("edge", vector).fields["decision"] for vector in vectors[:20]
    ]
    assert decisions == [None if np.isnan(d) else int(d) for d in scored.column("decision")[:20]]

    assert [listed.classifier.name for listed in list_classifiers(reader)] == ["edge"]
    assert len(list_calibrations(reader, "edge", limit=20).calibrations) == 1
    assert len(show(reader, "edge").decisions) == 5

    assert replay(workspace(reader, edge.cache), edge.value("SELECT min(id) FROM decision")).differing == ()
    out = edge.folder / "calibration.parquet"
    assert export(reader, "edge", Export.CALIBRATION, out, calibration_id=None).rows == edge.value(
        "SELECT count(*) FROM calibration_point"
    )


def test_a_snapshot_that_is_deleted_meanwhile_is_read_whole(edge: Bench, due: Due) -> None:
    with consistent_view(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        calibration = calibrations.by_id(connection, classifier, 1)
        before = calibrations.read_points(connection, calibration, Split.VP)
        give(edge, shift=1, rows=range(20))
        age(edge, QUIET)
        due(keep=1)
        assert edge.value("SELECT count(*) FROM calibration WHERE id = 1") == 0
        after = calibrations.read_points(connection, calibration, Split.VP)
    for name in ("exemplar_ids", "singleton"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
