"""A database that the migrations before the baseline made is what the baseline makes, and goes on as it was."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, text

from tests.migrations.migrating import assert_equal_but_for_rounding, assert_replay_equal, facts, move, table_contents
from tests.running import Bench, Golden
from venn_admit.errors import NotReadyError
from venn_admit.resources import bundled_folder
from venn_admit.store.database import schema
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.database.tables import differences
from venn_admit.store.search.array_cache import ArrayCache

# What such a database has besides: older versions of views, and of functions, which the newest do not call.
SUPERSEDED = (
    "grant_service_v1",
    "grant_service_v2",
    "is_chunk_unsent_v1",
    "prepare_service_v1",
    "prepare_service_v2",
    "prepare_service_v3",
    "prepare_service_v4",
    "prepare_service_v5",
    "report.calibration_v1",
    "report.decision_v1",
    "report.job_v1",
    "report.partition_v1",
    "report.selective_accuracy_v1",
    "report.selective_accuracy_v2",
)
# What the baseline says in one function instead of several.
REWRITTEN = ("is_chunk_unsent_v2(", "prepare_service_v6(")

DECIDED = """
SELECT
    predicted,
    match_count,
    distance,
    decision.logits,
    lower,
    upper,
    decision,
    reason
FROM decision
INNER JOIN exemplar ON decision.exemplar_id = exemplar.id
INNER JOIN classifier ON exemplar.classifier_id = classifier.id
WHERE classifier.name = :name AND external_id = ANY(:ids) AND require_full_match = FALSE
ORDER BY array_position(:ids, external_id)
"""
KINDS = """
SELECT DISTINCT
    calibrator.method,
    calibrator.certify,
    classifier.dimension,
    decision.weighted,
    decision.reason
FROM decision
INNER JOIN calibration ON decision.calibration_id = calibration.id
INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN classifier ON calibrator.classifier_id = classifier.id
"""
LATER = '''"""A column that is filled.

Why: a test.
"""

from alembic import op

revision = "9000"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE venn_admit.decision ADD COLUMN gained text NOT NULL DEFAULT 'a'")
    op.execute("CREATE VIEW report.gained_v1 AS SELECT id, gained FROM venn_admit.decision")


def downgrade() -> None:
    op.execute("DROP VIEW report.gained_v1")
    op.execute("ALTER TABLE venn_admit.decision DROP COLUMN gained")
'''


def base_revision() -> str:
    base = ScriptDirectory.from_config(schema.alembic_config()).get_base()
    assert base is not None
    return base


def test_nothing_is_pending(restored: Engine) -> None:
    assert schema.current_revision(restored) == base_revision()
    schema.upgrade_engine(restored)
    schema.require_usable(restored)
    assert differences(restored) == []


def test_its_schema_is_that_of_the_baseline(restored: Engine, engine: Engine) -> None:
    """Tables, columns, constraints, indexes, storage, comments, views, functions and rights."""
    schema.upgrade_engine(restored)
    there, made = (
        # A chain of OR has other parentheses once it was dumped.
        {(name, re.sub("[()]", "", fact) if fact.startswith("CHECK") else fact) for name, fact in facts(database)}
        for database in (restored, engine)
    )
    besides = {fact for fact in there - made if not fact[0].startswith(REWRITTEN)}
    assert {fact for fact in made - there if not fact[0].startswith(REWRITTEN)} == set()
    assert {fact for fact in besides if not fact[0].startswith(SUPERSEDED)} == set()
    for name in SUPERSEDED:
        assert any(fact[0].startswith(name) for fact in besides), name
    for name in REWRITTEN:
        assert any(fact[0].startswith(name) for fact in made - there), name


def test_its_decisions_replay_equal(restored: Engine, tmp_path: Path) -> None:
    schema.upgrade_engine(restored)
    with connect(restored) as connection:
        ids = list(connection.execute(text("SELECT id FROM decision ORDER BY id")).scalars())
        kinds = connection.execute(text(KINDS)).all()
    assert len(ids) > 50
    assert len(kinds) > 5
    schema.upgrade_engine(restored)
    assert_replay_equal(restored, ArrayCache(tmp_path), ids)


@pytest.mark.parametrize(("name", "part"), [("paints", range(36, 50)), ("logits", range(10))])
def test_it_decides_on_new_points_as_before(restored: Engine, tmp_path: Path, name: str, part: range) -> None:
    schema.upgrade_engine(restored)
    bench, points = Bench(restored, tmp_path), Golden("edge").exemplars("score", slice(part.start, part.stop))
    points["id"] = np.array([f"again-{row}" for row in part])
    if name == "logits":
        del points["r"]
    scored = bench.score(name, bench.write("again.npz", points), weighted=None)
    assert len(scored.table) == len(part)
    before, now = (bench.rows(DECIDED, name=name, ids=[f"{word}-{row}" for row in part]) for word in ("score", "again"))
    assert len(before) == len(part)
    assert_equal_but_for_rounding([tuple(row) for row in now], [tuple(row) for row in before])


def test_a_later_migration_takes_rows_along(restored: Engine, engine: Engine, tmp_path: Path) -> None:
    scripts = tmp_path / "migrations"
    shutil.copytree(bundled_folder("migrations"), scripts)
    (scripts / "versions" / "9000_gained.py").write_text(LATER.format(head=schema.head_revision()))
    config = schema.alembic_config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    schema.upgrade_engine(restored)
    before, known = table_contents(restored), facts(restored)
    for database in (restored, engine):
        move(database, "head", config=config)
        with connect(database) as connection:
            reader = "SELECT has_table_privilege('venn_admit_reader', 'report.gained_v1', 'SELECT')"
            assert connection.execute(text(reader)).scalar_one()
            rows = connection.execute(text("SELECT count(*) FILTER (WHERE gained = 'a') = count(*) FROM decision"))
            assert rows.scalar_one()
    move(restored, "-1", command.downgrade, config)
    assert (table_contents(restored), facts(restored)) == (before, known)


@pytest.mark.parametrize("revision", ["0001", "0077", "0099"])
def test_a_schema_of_before_is_refused(restored: Engine, revision: str) -> None:
    with transaction(restored) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    with pytest.raises(NotReadyError, match=rf"at revision {revision}, this program needs {schema.head_revision()}"):
        schema.require_usable(restored)
    with pytest.raises(NotReadyError, match=rf"revision {base_revision()} or newer, received {revision}"):
        schema.upgrade_engine(restored)
    assert schema.current_revision(restored) == revision
