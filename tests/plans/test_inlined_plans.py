"""Functions that several statements share are planned as if what they say were written out."""

from importlib.resources import files
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.plans.plans import explain
from tests.plans.test_snapshot_plans import STATEMENTS
from venn_admit.store.database.engine import connect
from venn_admit.store.database.statements import statement

LABELS, ROW = "label_events_since_retraction_v1", "row_of_stretch_v1"
# Each statement with what it calls.
CALLING: dict[str, tuple[set[str], dict[str, Any]]] = {
    "evaluations.labelled": ({LABELS}, STATEMENTS["evaluations.labelled"][2]),
    "reports.label_selections": ({LABELS}, {"classifier_id": 1}),
    "reports.recent_rows": ({LABELS, ROW}, STATEMENTS["reports.recent_rows"][2]),
    "reports.daily_decisions": ({ROW}, {"classifier_id": 1, "since": "2026-01-01", "sampled": 9}),
}


@pytest.mark.parametrize("name", CALLING)
def test_nothing_is_called(engine: Engine, name: str) -> None:
    called, parameters = CALLING[name]
    query = str(statement(name))
    assert {one for one in (LABELS, ROW) if one in query} == called
    with connect(engine) as connection:
        plan = str(explain(connection, query, parameters))
    assert "label_event" in plan or "job_row" in plan
    assert not [one for one in called if one in plan]


def test_no_statement_says_them_itself() -> None:
    for file in files("venn_admit.store").joinpath("sql").iterdir():
        said = file.read_text(encoding="utf-8")
        assert "max(retraction.id)" not in said, file.name
        assert "row_number::text" not in said, file.name
