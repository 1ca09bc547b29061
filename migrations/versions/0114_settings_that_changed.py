"""What a snapshot changed names losses, class shares, and whether it stands, is of a family, or is undivided.

Why: `snapshot_change_v1` knew the settings that there were when it was made, so that reports said that nothing had
changed between two calibrations which promise different things. Comments said that certificates hold together however
they are chosen: the sum of their levels bounds that only if none is tried because of what another showed.
"""

from collections.abc import Iterable

from alembic import op

from venn_admit.store.database.routines import changed_comments, former_comments, routine_statements

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


TOGETHER = (
    "Confidence that all of these hold together, if none was tried because of what another showed: 1 less the sum of "
    "1 - confidence."
)
COMMENTS = {
    "report.certificate_look_v1.joint_confidence": TOGETHER,
    "report.certificate_look_v2.joint_confidence": TOGETHER,
    "venn_admit.calibrator.family": (
        "Venn-Abers only: whether the confidence is that of the family: this certificate holds together with every one "
        "before it that looked at labels of the classifier, if none was tried because of what another showed."
    ),
}


def upgrade() -> None:
    replace("snapshot_change_v1_since_0114", changed_comments(COMMENTS))


def downgrade() -> None:
    views = "views/certificate_look_v1", "views/certificate_look_v2"
    replace("snapshot_change_v1", former_comments(COMMENTS, views=views, tables=["baseline/calibrations"]))


def replace(view: str, comments: Iterable[str]) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in comments:
        op.execute(statement)
    for statement in routine_statements(f"views/{view}", replace=True):
        op.execute(statement)
