"""What the certificates of a generation have spent of 1 - confidence stays spent once the generation was deleted.

Why: generations share their labels outside of the training data, so a confidence that all certificates hold counts
those of every generation: the k-th chain of a standing certificate has the level eps / (k (k + 1)), and a family counts
its looks. Both were counted from what is left, so that a part could be spent twice.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

COLUMNS = {
    "earlier_chains": ("integer", "Largest number of a chain of deleted generations; 0 if none began one."),
    "earlier_looks": ("bigint", "How many certificates of deleted generations looked at labels."),
    "earlier_spent": ("numeric", "Sum of 1 - confidence of the certificates of deleted generations."),
}
VIEWS = {"venn_admit": "certificate_look_row_v2", "report": "certificate_look_v2"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name, (kind, comment) in COLUMNS.items():
        op.execute(f"ALTER TABLE venn_admit.classifier ADD COLUMN {name} {kind} NOT NULL DEFAULT 0")
        op.execute(f"COMMENT ON COLUMN venn_admit.classifier.{name} IS '{comment}'")
    for name in ("functions/note_deleted_generation_v1", *(f"views/{view}" for view in VIEWS.values())):
        for statement in routine_statements(name):
            op.execute(statement)
    op.execute(
        "CREATE TRIGGER classifier_note_deletion AFTER UPDATE OF deleting_since ON venn_admit.classifier FOR EACH ROW "
        "WHEN (old.deleting_since IS NULL AND new.deleting_since IS NOT NULL) "
        "EXECUTE FUNCTION venn_admit.note_deleted_generation_v1()"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DROP TRIGGER classifier_note_deletion ON venn_admit.classifier")
    op.execute("DROP FUNCTION venn_admit.note_deleted_generation_v1()")
    for schema, name in reversed(VIEWS.items()):
        op.execute(f"DROP VIEW {schema}.{name}")
    for name in COLUMNS:
        op.execute(f"-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.classifier DROP COLUMN {name}")
