"""No neighbour list holds a training exemplar that waits.

Why: training exemplars that arrive while a recalibration is under way wait for the next support version. Older programs
know nothing of that, and take them for neighbours at once. They go on: a list of theirs that holds such an exemplar is
refused, and the chunk of its job is computed again, by a newer program or once the exemplar has joined. Lists that are
stored obey the rule already. It is checked against them while others read and write.
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

VERSIONS = "Version of the training exemplars; ascends with every change, in one sequence with exemplar ids{}."
WAITING = ". Those with a higher id wait for the recalibration that is running"

JOIN_WAITING = """
UPDATE venn_admit.classifier
SET
    support_revision = gen_random_uuid(),
    support_version = waiting.newest
FROM (
    SELECT
        classifier_id,
        max(id) AS newest
    FROM venn_admit.exemplar
    WHERE split = 'train'
    GROUP BY classifier_id
) AS waiting
WHERE
    classifier.id = waiting.classifier_id
    AND classifier.support_version < waiting.newest
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _comment(VERSIONS.format(WAITING), before=VERSIONS.format(""))
    # An interrupted attempt may have left it.
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.neighbours DROP CONSTRAINT IF EXISTS neighbours_version_check"
    )
    op.execute(
        "ALTER TABLE venn_admit.neighbours ADD CONSTRAINT neighbours_version_check "
        "CHECK (support_version >= ALL (neighbour_ids)) NOT VALID"
    )
    # Outside of the transaction, which holds a lock that readers would wait for.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("ALTER TABLE venn_admit.neighbours VALIDATE CONSTRAINT neighbours_version_check")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # Older programs take those that wait for training exemplars at once.
    op.execute(JOIN_WAITING)
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.neighbours DROP CONSTRAINT neighbours_version_check"
    )
    _comment(VERSIONS.format(""), before=VERSIONS.format(WAITING))


def _comment(comment: str, *, before: str) -> None:
    op.alter_column(
        "classifier",
        "support_version",
        existing_type=sa.BigInteger(),
        existing_nullable=False,
        existing_server_default=sa.text("0"),
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )
