"""Programs that are older than the schema: they go on while they understand it, and stop when they do not."""

import pytest
from sqlalchemy import Engine

from tests.migrations.migrating import as_a_newer_program_left_it, move
from venn_admit.errors import NotReadyError
from venn_admit.store.database import schema


def test_programs_of_before_the_baseline_stop(empty: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    move(empty, "head")
    monkeypatch.setattr(schema, "head_revision", lambda: "0016")
    with pytest.raises(NotReadyError, match=r"needs a program of revision \d{4} or newer"):
        schema.require_usable(empty)


def test_an_older_program_goes_on_working_on_a_schema_that_gained_things(engine: Engine) -> None:
    as_a_newer_program_left_it(engine, schema.head_revision())
    schema.require_usable(engine)
    schema.upgrade_engine(engine)
    assert schema.current_revision(engine) == "9999"


def test_an_older_program_refuses_a_schema_that_it_no_longer_understands(engine: Engine) -> None:
    as_a_newer_program_left_it(engine, "9000")
    for refused in (schema.require_usable, schema.upgrade_engine):
        with pytest.raises(NotReadyError, match=r"9999.*9000 or newer.*install the newer version"):
            refused(engine)
