"""The whole schema: tables, views and functions, and the rights of the roles that use them.

Why: no database that is older has to be migrated. A new database gets from here what the migrations before this one
made step by step; a database that they made has this revision already. It also keeps older versions of functions, which
nothing here calls.

Large tables are vacuumed and counted by the time a twentieth or a fiftieth of their rows has changed. By Postgres'
defaults, a fifth and a tenth must change first: of ten million decisions, that is two million rows that views read from
the table although the index has them, and a million that the planner does not know of, such as all of a classifier that
came last.

A role belongs to the server, and a user who may not create one can migrate as well: `venn-admit db grant-reader` and
`venn-admit db grant-service` make them later.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements, table_statements

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

# Each after those that it refers to.
TABLES = (
    "exemplars",
    "access",
    "approximations",
    "calibrations",
    "decisions",
    "forgotten",
    "monitors",
    "requests",
    "standing",
    "uses",
    "venn_abers",
    "work",
    "cascades",
    "audits",
    "reviews",
)
ROUTINES = (
    "functions/band_points_v1",
    "functions/band_thresholds_v1",
    "functions/band_v1",
    "functions/begin_deletion_v1",
    "functions/create_vector_partitions_v2",
    "functions/drop_vector_partitions_v1",
    "functions/forget_label_events_v1",
    "functions/group_value_v1",
    "functions/is_chunk_free_v1",
    "functions/is_chunk_claimable_v1",
    "functions/is_chunk_unsent_v2",
    "functions/is_in_snapshot_v1",
    "functions/make_salt_v1",
    "functions/prepare_reader_v1",
    "functions/grant_reader_v1",
    "functions/prepare_service_v6",
    "functions/grant_service_v3",
    "functions/reaches_groups_v1",
    "functions/watched_v2",
    "views/audit_v1",
    "views/standing_label_v1",
    "views/reviewed_draw_v1",
    "views/audit_weight_v1",
    "views/audit_draw_v1",
    "views/average_policy_v1",
    "views/awaited_chunk_v1",
    "views/calibration_in_use_v1",
    "views/calibration_use_row_v1",
    "views/calibration_use_v1",
    "views/calibration_v2",
    "views/cascade_stage_v1",
    "views/certificate_look_row_v1",
    "views/certificate_look_v1",
    "views/classifier_address_v1",
    "views/classifier_row_v1",
    "views/classifier_v1",
    "views/decided_point_v1",
    "views/decision_v2",
    "views/discrepancy_v1",
    "views/exemplar_count_v1",
    "views/exemplar_influence_v1",
    "views/group_accuracy_v1",
    "views/job_summary_v1",
    "views/job_v2",
    "views/kept_since_v1",
    "views/label_v1",
    "views/neighbour_v1",
    "views/policy_test_v1",
    "views/policy_test_v2",
    "views/policy_v2",
    "views/policy_v3",
    "views/promised_kinds_v1",
    "views/alarm_row_v2",
    "views/alarm_v2",
    "views/alarm_v1",
    "views/monitor_v2",
    "views/monitor_v1",
    "views/recent_decision_v1",
    "views/rejection_v1",
    "views/selective_accuracy_v3",
    "views/snapshot_change_v1",
    "views/calibration_change_v1",
    "views/snapshot_point_v1",
    "views/cell_v1",
    "views/judged_point_v1",
    "views/calibration_point_v1",
    "views/label_budget_v1",
    "views/partition_summary_v1",
    "views/partition_v2",
    "views/point_accuracy_v1",
    "functions/snapshot_diff_v1",
    "views/traffic_v1",
    "views/daily_traffic_v1",
    "views/withheld_row_v1",
    "views/withheld_calibration_v1",
)

ROLES = {"venn_admit_reader": "prepare_reader_v1", "venn_admit_service": "prepare_service_v6"}
PREPARE_ROLE = """
DO $block$
BEGIN
    PERFORM venn_admit.{function}();
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE WARNING 'this user may not create the role {role}: a user who may can do so later';
END
$block$
"""

# The roles stay, as other databases of the server may use them, and so does Alembic's own table.
DROP_ALL = """
DO $block$
DECLARE
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'venn_admit');
    kind text;
BEGIN
    EXECUTE (
        SELECT format('DROP TABLE %s CASCADE', string_agg(oid::regclass::text, ', '))
        FROM pg_class
        WHERE
            relnamespace = 'venn_admit'::regnamespace
            AND relkind IN ('r', 'p')
            AND NOT relispartition
            AND relname <> 'alembic_version'
    );
    EXECUTE (
        SELECT format('DROP FUNCTION %s CASCADE', string_agg(oid::regprocedure::text, ', '))
        FROM pg_proc
        WHERE pronamespace = 'venn_admit'::regnamespace
    );
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        FOREACH kind IN ARRAY ARRAY['TABLES', 'SEQUENCES', 'FUNCTIONS'] LOOP
            EXECUTE format(
                'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA venn_admit REVOKE ALL ON %s FROM venn_admit_service',
                owner, kind
            );
        END LOOP;
        REVOKE ALL ON venn_admit.alembic_version FROM venn_admit_service;
        REVOKE ALL ON SCHEMA venn_admit FROM venn_admit_service;
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # In public, where any other program in this database looks for it too.
    op.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    op.execute("CREATE SCHEMA report")
    for room in TABLES:
        for statement in table_statements(f"baseline/{room}"):
            op.execute(statement)
    for routine in ROUTINES:
        for statement in routine_statements(routine):
            op.execute(statement)
    # A migration that takes away or changes what programs use replaces it.
    op.execute(f"CREATE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{revision}'")
    op.execute(
        "COMMENT ON FUNCTION venn_admit.oldest_program() IS "
        "'The head revision of the oldest program that works on this schema.'"
    )
    for role, function in ROLES.items():
        op.execute(PREPARE_ROLE.format(role=role, function=function))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP SCHEMA report CASCADE")
    op.execute(DROP_ALL)
