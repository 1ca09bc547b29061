"""The service's role writes no number and no time of a ledger, and marks no deletion without an event.

Why: a member of `venn_admit_service` could let a classifier count as being deleted, and then have its labels and
vectors removed; give an exemplar the id of another that was forgotten; and add events of any number and time, so that
the next ones were refused. Rights to columns prevent that. Deletions are marked, and tombstones salted, by functions
with the owner's rights, and partitions are made only for a classifier that exists.

Nothing is rewritten. Older programs go on, except that under that role they begin no deletion and make no salt: both
deleting and forgetting need every program to be upgraded anyway.
"""

from pathlib import Path

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

FUNCTIONS = Path(__file__).parents[1] / "routines" / "functions"
OWN_RIGHTS = {
    "begin_deletion_v1": "integer[], text, bigint, text",
    "make_salt_v1": "integer[]",
}
PARTITIONS = "venn_admit.create_vector_partitions_v2(integer, integer)"

IF_THERE_IS_A_ROLE = """
DO $block$
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        {}
    END IF;
END
$block$
"""
LIMIT = "PERFORM venn_admit.prepare_service_v4();"
# Rights to columns go with those to the table.
GIVE_BACK = """
        REVOKE INSERT, UPDATE ON
            venn_admit.api_key, venn_admit.audit_event, venn_admit.classifier, venn_admit.exemplar,
            venn_admit.forgotten_exemplar, venn_admit.label_event
            FROM venn_admit_service;
        PERFORM venn_admit.prepare_service_v3();
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for function, arguments in OWN_RIGHTS.items():
        op.execute((FUNCTIONS / f"{function}.sql").read_text())
        op.execute(f"REVOKE EXECUTE ON FUNCTION venn_admit.{function}({arguments}) FROM PUBLIC")
    op.execute((FUNCTIONS / "prepare_service_v4.sql").read_text())
    _replace("create_vector_partitions_v2_since_0052")
    _replace("grant_service_v1_since_0052")
    op.execute(IF_THERE_IS_A_ROLE.format(LIMIT))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(IF_THERE_IS_A_ROLE.format(GIVE_BACK))
    _replace("grant_service_v1_since_0045")
    _replace("create_vector_partitions_v2")
    op.execute(f"ALTER FUNCTION {PARTITIONS} SECURITY DEFINER SET search_path = pg_catalog, pg_temp")
    for function in ("prepare_service_v4", *OWN_RIGHTS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")


def _replace(function: str) -> None:
    sql = (FUNCTIONS / f"{function}.sql").read_text()
    op.execute(sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
