"""Comments say whether calibrations are in use or kept current, and by which points a score was chosen.

Why: comments called a calibration current, which is its state in the table: it is in use, kept current, or retired with
its setting. With a policy, a score is chosen by the points that propose it, and comments spoke of mc.
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
SHARES = {
    f"{column}_share": f"Share that {score} score admits by cross-fitting, of mc, or with a policy of the points that "
    "propose it; null unless auto chose the score."
    for column, score in (("network", "the network's"), ("reliability", "the reliability"))
}
COMMENTS = {
    **{
        f"{of}.{share}": said
        for of in ("venn_admit.score_choice", "report.calibration_v2")
        for share, said in SHARES.items()
    },
    "venn_admit.calibration.state": STATE,
    **{f"report.{view}.state": STATE for view in WITH_STATE},
    **{f"report.{view}": comment for view, comment in VIEWS.items()},
}


def upgrade() -> None:
    execute(changed_comments(COMMENTS))


def downgrade() -> None:
    views = [f"views/{view}" for view in (*WITH_STATE, *VIEWS)]
    execute(former_comments(COMMENTS, views=views, tables=["baseline/calibrations", "baseline/venn_abers"]))


def execute(comments: Iterable[str]) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in comments:
        op.execute(statement)
