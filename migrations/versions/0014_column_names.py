"""Columns under the names that code and documentation use: `support_version` and `vector`.

Why: one term for one thing. A support version was also called `complete_to`, and the exemplar vector only `r`. Renaming
changes the catalogue and no row. Programs of before use the old names, so they no longer work on this schema.
"""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

FUNCTIONS = Path(__file__).parents[1] / "routines" / "functions"

RENAMED = (
    ("neighbours", "complete_to", "support_version"),
    ("approximation", "complete_to", "support_version"),
    ("decision", "complete_to", "support_version"),
    ("classifier", "neighbours_complete_to", "neighbours_support_version"),
    ("exemplar_vector", "r", "vector"),
)

# The partitions made so far name their checks as the function of their time does for new ones.
RENAME_CHECKS = """
DO $block$
DECLARE
    check_of_length record;
BEGIN
    FOR check_of_length IN
        SELECT conrelid::regclass AS part, conname
        FROM pg_constraint
        WHERE
            contype = 'c'
            AND conrelid IN (SELECT relid FROM pg_partition_tree('venn_admit.exemplar_vector') WHERE isleaf)
            AND conname LIKE '%\\_{before}\\_check'
    LOOP
        EXECUTE format(
            'ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
            check_of_length.part,
            check_of_length.conname,
            regexp_replace(check_of_length.conname, '_{before}_check$', '_{after}_check')
        );
    END LOOP;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table, before, after in RENAMED:
        _rename_column(table, before, after)
    op.execute(RENAME_CHECKS.format(before="r", after="vector"))
    _replace_function("v1", "v2")
    _let_programs_work_from("0014")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _let_programs_work_from("0012")
    _replace_function("v2", "v1")
    op.execute(RENAME_CHECKS.format(before="vector", after="r"))
    for table, before, after in RENAMED:
        _rename_column(table, after, before)


def _rename_column(table: str, before: str, after: str) -> None:
    # Older programs break, and are told so by `oldest_program`.
    op.execute(f"-- squawk-ignore renaming-column\nALTER TABLE venn_admit.{table} RENAME COLUMN {before} TO {after}")


def _replace_function(before: str, after: str) -> None:
    """Put one version of the function that makes partitions in the place of another."""
    op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.create_vector_partitions_{before}")
    op.execute((FUNCTIONS / f"create_vector_partitions_{after}.sql").read_text())
    comment = (
        f"Exemplar vectors, apart and narrow; two partitions a classifier, made by create_vector_partitions_{after}."
    )
    op.execute(f"COMMENT ON TABLE venn_admit.exemplar_vector IS '{comment}'")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
