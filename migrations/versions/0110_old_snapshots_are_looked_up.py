"""The jobs of a snapshot, the snapshots of a chain, and the snapshot of a revision are looked up.

Why: each snapshot that was deleted made its foreign key read all jobs, each advance of a certificate that stands read
the certificates of all classifiers that were made since its last one, and each new entry of a cache all revisions.
"""

from alembic import op

revision = "0110"
down_revision = "0107"
branch_labels = None
depends_on = None

INDEXES = {
    "job_calibration_idx": "job (calibration_id) WHERE calibration_id IS NOT NULL",
    "certificate_chain_idx": "certificate (chain_id, calibration_id) WHERE chain_id IS NOT NULL",
    "calibration_revision_idx": "calibration (revision)",
}


def upgrade() -> None:
    # It blocks no writer, and works in no transaction. What an interrupted attempt left is built again.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        for name, columns in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON venn_admit.{columns}")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name in INDEXES:
        op.execute(f"DROP INDEX venn_admit.{name}")
