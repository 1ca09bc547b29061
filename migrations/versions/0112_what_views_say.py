"""Views say nothing of jobs without decisions, count labelled decisions faster, and have comments that are true.

Why: `traffic_v1` gave a stability index to jobs that were cancelled or removed, and called changed proportions
harmless, which they are not for a promise that pools its partitions. `selective_accuracy_v4` sorted every labelled
decision by all names of its classifier: of 234,000, that took 34 s of a processor, and 8 s without.
"""

from alembic import op

from venn_admit.store.database.routines import changed_comments, former_comments, routine_statements

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None

VIEWS = ("decided_point_v2", "selective_accuracy_v4", "traffic_v1", "daily_traffic_v1")
COMMENTS = {
    "report.calibration_v2.thresholds": (
        "Least lower probability asked for, for each predicted class. Certificates and the average promise, which ask "
        "for 1 - alpha of each, decide by thresholds of their own: policy_v3 and average_policy_v1 have those."
    ),
    "report.alarm_v1.is_standing": "Whether it stands, until labels are corrected or the monitor is started again.",
    "report.audit_v1.key_name": "What the key is for, in the words of its maker.",
    "report.audit_v1.is_replay": "Whether an earlier answer was given again, and nothing was done.",
    "venn_admit.api_key.name": "What the key is for, in the words of its maker.",
    "venn_admit.monitor_alarm.ended_at": (
        "When labels were corrected so that it no longer stands, or the monitor was started again; or null."
    ),
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for view in VIEWS:
        replace(f"{view}_since_{revision}")
    for statement in changed_comments(COMMENTS):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    views, tables = (
        ("views/calibration_v2", "views/alarm_v1", "views/audit_v1"),
        ("baseline/access", "baseline/monitors"),
    )
    for statement in former_comments(COMMENTS, views=views, tables=tables):
        op.execute(statement)
    for view in reversed(VIEWS):
        replace(view)


def replace(view: str) -> None:
    for statement in routine_statements(f"views/{view}", replace=True):
        op.execute(statement)
