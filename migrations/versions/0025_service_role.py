"""A role for commands and workers that changes rows and no tables.

Why: the user that migrates owns the schema, and a service that runs as the owner could drop it. Members of
`venn_admit_service` read and write rows; the ledger of labels they only append to, and the schema's revision they only
read. A new classifier needs two partitions, which its owner makes for them: the function that does it runs with the
owner's rights.

A role belongs to the server, and a user who may not create one can migrate as well: `venn-admit db grant-service` makes
the role later. Nothing is taken away, so older programs go on.
"""

from pathlib import Path

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

FUNCTIONS = ("prepare_service_v1", "grant_service_v1")
PARTITIONS = "venn_admit.create_vector_partitions_v2(integer, integer)"

PREPARE_SERVICE = """
DO $block$
BEGIN
    PERFORM venn_admit.prepare_service_v1();
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE WARNING 'this user may not create the role venn_admit_service: a user who may can do so later';
END
$block$
"""

# The role stays: other databases of the server may use it, and it has members.
TAKE_RIGHTS_BACK = """
DO $block$
DECLARE
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'venn_admit');
    ours text;
    kind text;
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        FOREACH ours IN ARRAY ARRAY['venn_admit', 'report'] LOOP
            FOREACH kind IN ARRAY ARRAY['TABLES', 'SEQUENCES', 'FUNCTIONS'] LOOP
                EXECUTE format(
                    'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s REVOKE ALL ON %s FROM venn_admit_service',
                    owner, ours, kind
                );
                EXECUTE format('REVOKE ALL ON ALL %s IN SCHEMA %s FROM venn_admit_service', kind, ours);
            END LOOP;
            EXECUTE format('REVOKE ALL ON SCHEMA %s FROM venn_admit_service', ours);
        END LOOP;
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    ours = Path(__file__).parents[1] / "routines" / "functions"
    for function in FUNCTIONS:
        op.execute((ours / f"{function}.sql").read_text())
    op.execute(f"REVOKE EXECUTE ON FUNCTION {PARTITIONS} FROM PUBLIC")
    # Names without a schema would be looked up where the caller says.
    op.execute(f"ALTER FUNCTION {PARTITIONS} SECURITY DEFINER SET search_path = pg_catalog, pg_temp")
    op.execute(PREPARE_SERVICE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(TAKE_RIGHTS_BACK)
    op.execute(f"ALTER FUNCTION {PARTITIONS} SECURITY INVOKER RESET search_path")
    op.execute(f"GRANT EXECUTE ON FUNCTION {PARTITIONS} TO PUBLIC")
    for function in reversed(FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")
