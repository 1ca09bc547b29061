"""Comments say of calibrations whether they are in use or kept current, as the references do.

Why: comments called a calibration current, which is its state in the table: it is in use, kept current, or retired with
its setting.
"""

from collections.abc import Iterable

from alembic import op

from venn_admit.store.database.routines import changed_comments, former_comments

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None


STATE = (
    "current if it is the one of its setting, which is in use or kept current until the setting is retired; retired if "
    "another took its place; withheld if it was never put in use."
)
WITH_STATE = ("average_policy_v1", "calibration_change_v1", "calibration_v2", "policy_v2", "policy_v3")
VIEWS = {
    "calibration_point_v1": (
        "The calibration points of every snapshot, in use, kept current or neither, one by one: their place, their "
        "label, and what the snapshot makes of them."
    ),
    "cell_v1": (
        "The cells of every snapshot by Venn-Abers, in use, kept current or neither, that hold points of mc: a bin of "
        "q and a predicted class, and the score from which it admits."
    ),
    "partition_v2": (
        "The calibration points of every snapshot, in use, kept current or neither, by split, bin of q, quartile of d "
        "and label. Quartiles are those of all points of the snapshot. A d that equals a quartile is above it."
    ),
    "point_accuracy_v1": (
        "How often network and KNN are right on the calibration points of every snapshot, in use, kept current or "
        "neither, without rejection: per class and over all, with F0.5. The localizer is left out, because its "
        "distances are not stored."
    ),
}
COMMENTS = {
    "venn_admit.calibration.state": STATE,
    **{f"report.{view}.state": STATE for view in WITH_STATE},
    **{f"report.{view}": comment for view, comment in VIEWS.items()},
}


def upgrade() -> None:
    execute(changed_comments(COMMENTS))


def downgrade() -> None:
    views = [f"views/{view}" for view in (*WITH_STATE, *VIEWS)]
    execute(former_comments(COMMENTS, views=views, tables=["baseline/calibrations"]))


def execute(comments: Iterable[str]) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in comments:
        op.execute(statement)
