"""What is left of exemplars that were forgotten, and classifiers that are being deleted.

Why: a person may have what is stored about them removed. What stays says that something is missing, and no more: a
tombstone by which an id that comes back is noticed, how many training exemplars and calibration points there were
before, and nothing of what they were. A classifier is deleted in many transactions, and from the first of them on it
can no longer be used.

The role of the service deletes no label by itself: a function does it for exemplars with a tombstone, which the role
can add and not remove. Another function drops the partitions of a classifier that is being deleted. New tables and
columns, and a check that allows more: it takes no time, rows stay as they are, and older programs go on. There is no
way back once something was removed that an older schema would bring back, or could not hold.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

FUNCTIONS = Path(__file__).parents[1] / "routines" / "functions"
OWN_RIGHTS = {
    "forget_label_events_v1": "bigint[]",
    "drop_vector_partitions_v1": "integer",
}
GENERATION = "generation >= 1 AND (generation > 1 OR original_id IS NULL)"
GENERATION_BEFORE = "generation >= 1 AND (generation = 1) = (original_id IS NULL)"

PREPARE_SERVICE = """
DO $block$
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        REVOKE UPDATE, DELETE ON venn_admit.forgotten_exemplar FROM venn_admit_service;
    END IF;
END
$block$
"""

REFUSE_REMOVED = """
DO $block$
BEGIN
    IF
        EXISTS (SELECT FROM venn_admit.forgotten_exemplar)
        OR EXISTS (SELECT FROM venn_admit.forgotten_point)
        OR EXISTS (SELECT FROM venn_admit.forgotten_training)
    THEN
        RAISE EXCEPTION 'exemplars were forgotten, and an older schema cannot refuse them when they come back';
    END IF;
    IF EXISTS (SELECT FROM venn_admit.classifier WHERE deleting_since IS NOT NULL) THEN
        RAISE EXCEPTION 'classifiers are being deleted, and would be back in an older schema: delete them again first';
    END IF;
    IF EXISTS (SELECT FROM venn_admit.classifier WHERE generation > 1 AND original_id IS NULL) THEN
        RAISE EXCEPTION 'there are classifiers whose first generation was deleted, which an older schema cannot hold';
    END IF;
END
$block$
"""

ACTIONS = (
    "What was asked for: the operationId of the route, authenticate, create_key, revoke_key, create_generation, "
    "switch_generation, state_extractor, delete_job{}."
)
JOBS = " or prune_jobs"
REMOVALS = ", prune_jobs, forget_exemplars, delete_classifier or delete_generation"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    _comment(ACTIONS.format(REMOVALS), before=ACTIONS.format(JOBS))
    op.add_column(
        "classifier",
        sa.Column(
            "salt",
            sa.LargeBinary(),
            nullable=True,
            comment="Random; tombstones are digests of it and an id. The same for all generations; null until there "
            "is one.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "classifier",
        sa.Column(
            "deleting_since",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When its deletion began, from when on it cannot be used; null if it is not being deleted.",
        ),
        schema="venn_admit",
    )
    _check_generation(GENERATION)
    op.create_table(
        "forgotten_exemplar",
        sa.Column(
            "digest",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of the classifier's salt and the exemplar's id, or of a mark and the id of a document.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was forgotten.",
        ),
        sa.CheckConstraint("octet_length(digest) = 32", name=op.f("forgotten_exemplar_digest_check")),
        sa.PrimaryKeyConstraint("digest", name=op.f("forgotten_exemplar_pkey")),
        schema="venn_admit",
        comment="Tombstones of exemplars and documents that were forgotten, so that one that comes back is noticed. "
        "Only added to.",
    )
    op.create_table(
        "forgotten_training",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Classifier that it trained."),
        sa.Column("support_from", sa.BigInteger(), nullable=False, comment="Support version from which it trained."),
        sa.Column(
            "support_until",
            sa.BigInteger(),
            nullable=False,
            comment="Support version from which it no longer trained.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was forgotten.",
        ),
        sa.CheckConstraint("support_until > support_from", name=op.f("forgotten_training_support_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("forgotten_training_classifier_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("forgotten_training_pkey")),
        schema="venn_admit",
        comment="Training exemplars that were forgotten, a row each, of which nothing is left but when they trained.",
    )
    op.create_index(
        op.f("forgotten_training_classifier_id_idx"), "forgotten_training", ["classifier_id"], schema="venn_admit"
    )
    op.create_table(
        "forgotten_point",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="The calibrator."),
        sa.Column("split", sa.Text(), nullable=False, comment="mc or vp."),
        sa.Column(
            "valid_from", sa.Integer(), nullable=False, comment="Number of the first snapshot that counts the point."
        ),
        sa.Column(
            "valid_until",
            sa.Integer(),
            nullable=False,
            comment="Number of the first snapshot that no longer counts it.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was forgotten.",
        ),
        sa.CheckConstraint("split IN ('mc', 'vp')", name=op.f("forgotten_point_split_check")),
        sa.CheckConstraint("valid_until > valid_from", name=op.f("forgotten_point_validity_check")),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("forgotten_point_calibrator_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("forgotten_point_pkey")),
        schema="venn_admit",
        comment="Calibration points that were forgotten, a row each, of which nothing is left but which snapshots "
        "count them.",
    )
    op.create_index(
        op.f("forgotten_point_calibrator_id_idx"), "forgotten_point", ["calibrator_id"], schema="venn_admit"
    )
    for function, arguments in OWN_RIGHTS.items():
        op.execute((FUNCTIONS / f"{function}.sql").read_text())
        op.execute(f"REVOKE EXECUTE ON FUNCTION venn_admit.{function}({arguments}) FROM PUBLIC")
        # Names without a schema would be looked up where the caller says.
        op.execute(
            f"ALTER FUNCTION venn_admit.{function}({arguments}) SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
        )
    op.execute((FUNCTIONS / "prepare_service_v3.sql").read_text())
    _replace("grant_service_v1_since_0045")
    op.execute(PREPARE_SERVICE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # All at once and first, so that nothing is removed after the look.
    op.execute(
        "LOCK TABLE venn_admit.classifier, venn_admit.forgotten_exemplar, venn_admit.forgotten_point, "
        "venn_admit.forgotten_training IN ACCESS EXCLUSIVE MODE"
    )
    op.execute(REFUSE_REMOVED)
    _comment(ACTIONS.format(JOBS), before=ACTIONS.format(REMOVALS))
    _replace("grant_service_v1_since_0033")
    op.execute("-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.prepare_service_v3")
    for function in OWN_RIGHTS:
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")
    for table in ("forgotten_point", "forgotten_training", "forgotten_exemplar"):
        op.drop_table(table, schema="venn_admit")
    _check_generation(GENERATION_BEFORE)
    for column in ("deleting_since", "salt"):
        op.drop_column("classifier", column, schema="venn_admit")


def _comment(comment: str, *, before: str) -> None:
    op.alter_column(
        "audit_event",
        "action",
        existing_type=sa.Text(),
        existing_nullable=False,
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )


def _check_generation(condition: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.classifier DROP CONSTRAINT classifier_generation_check"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.classifier ADD CONSTRAINT classifier_generation_check CHECK ({condition})"
    )


def _replace(function: str) -> None:
    sql = (FUNCTIONS / f"{function}.sql").read_text()
    op.execute(sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
