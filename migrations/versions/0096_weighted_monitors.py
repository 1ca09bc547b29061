"""Labels of drawn points count in monitors by their probability, and one rule says which drawn points are reviewed.

Why: monitors counted random labels alone, so that reviews, which are drawn and not only declared to be random, watched
nothing. After a label was taken back, the view of the draws and the counts of the rule said different things.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program, routine_statements

revision = "0096"
down_revision = "0095"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for view in ("reviewed_draw_v1", "audit_weight_v1", "audit_draw_v1_since_0096"):
        replace(view)
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # Older programs cannot read states that hold weights; random labels are counted again.
    op.execute(
        "DELETE FROM venn_admit.monitor_state AS state USING venn_admit.monitor AS monitor, "
        "venn_admit.calibrator AS calibrator, venn_admit.audit_rule AS rule "
        "WHERE state.monitor_id = monitor.id AND monitor.calibrator_id = calibrator.id "
        "AND calibrator.classifier_id = rule.classifier_id"
    )
    replace("audit_draw_v1")
    op.execute("DROP VIEW venn_admit.audit_weight_v1")
    op.execute("DROP VIEW venn_admit.reviewed_draw_v1")
    op.execute(oldest_program("0094"))


def replace(view: str) -> None:
    for statement in routine_statements(f"views/{view}", replace=True):
        op.execute(statement)
