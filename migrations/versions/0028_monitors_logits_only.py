"""Monitors of classifiers with logits only, whose partitions are predicted classes.

Why: whether the promise still holds is told by labels and decisions, which need no vectors. Such a monitor rests on no
KNN parameters, and its plan has one partition a class instead of three, which a check sees to. They are few, so this
takes no time. Nothing is taken away, and older programs leave such classifiers alone, so they go on.
"""

from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

REDEFINED = ("monitor_v1", "alarm_v1")
PARTITIONS = (
    "(knn_parameters_id IS NULL) = (json_array_length(plan -> 'documents') = CAST(plan ->> 'class_count' AS integer))"
)
COMMENT_BEFORE = "KNN parameters of the snapshots whose decisions count"

REFUSE_LOGITS_ONLY = """
DO $block$
BEGIN
    IF EXISTS (SELECT 1 FROM venn_admit.monitor WHERE knn_parameters_id IS NULL) THEN
        RAISE EXCEPTION 'there are monitors of classifiers with logits only, which an older schema cannot hold';
    END IF;
END
$block$
"""


def upgrade() -> None:
    _set_timeouts()
    op.execute(
        "-- squawk-ignore ban-drop-not-null\n"
        "ALTER TABLE venn_admit.monitor ALTER COLUMN knn_parameters_id DROP NOT NULL"
    )
    # At once, as a classifier has a handful of monitors.
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.monitor ADD CONSTRAINT monitor_partitions_check CHECK ({PARTITIONS})"
    )
    _comment(f"{COMMENT_BEFORE}; null if the classifier has logits only.")
    for view in REDEFINED:
        for statement in view_statements(f"{view}_since_0028"):
            op.execute(statement)


def downgrade() -> None:
    _set_timeouts()
    op.execute("LOCK TABLE venn_admit.monitor IN ACCESS EXCLUSIVE MODE")
    op.execute(REFUSE_LOGITS_ONLY)
    for view in REDEFINED:
        for statement in view_statements(view):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    _comment(f"{COMMENT_BEFORE}.")
    op.drop_constraint(op.f("monitor_partitions_check"), "monitor", schema="venn_admit")
    op.alter_column("monitor", "knn_parameters_id", nullable=False, schema="venn_admit")


def _set_timeouts() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")


def _comment(text: str) -> None:
    op.execute(f"COMMENT ON COLUMN venn_admit.monitor.knn_parameters_id IS '{text}'")
