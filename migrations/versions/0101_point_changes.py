"""A ledger says which points changed since a snapshot, so that recalibrating reads those and no others.

Why: after one label, a recalibration looked for points without an approximation among all, and read every approximation
again. Triggers write the ledger, so that no statement, and no program from before, can leave a change out.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements, table_statements

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

# Each trigger with its table, what it follows, and the rows that it is given.
TRIGGERS = {
    "exemplar_note_update": ("exemplar", "UPDATE", "OLD TABLE AS before NEW TABLE AS after"),
    "approximation_note_insert": ("approximation", "INSERT", "NEW TABLE AS changed"),
    "approximation_note_delete": ("approximation", "DELETE", "OLD TABLE AS changed"),
    "approximation_note_update": ("approximation", "UPDATE", "NEW TABLE AS changed"),
}
FUNCTIONS = ("note_exemplar_changes_v1", "note_approximation_changes_v1")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in table_statements("tables/changes"):
        op.execute(statement)
    for name in FUNCTIONS:
        for statement in routine_statements(f"functions/{name}"):
            op.execute(statement)
    for name, (table, verb, rows) in TRIGGERS.items():
        op.execute(
            f"CREATE TRIGGER {name} AFTER {verb} ON venn_admit.{table} REFERENCING {rows} FOR EACH STATEMENT "
            f"EXECUTE FUNCTION venn_admit.note_{table}_changes_v1()"
        )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name, (table, _, _) in TRIGGERS.items():
        op.execute(f"DROP TRIGGER {name} ON venn_admit.{table}")
    for name in FUNCTIONS:
        op.execute(f"DROP FUNCTION venn_admit.{name}()")
    for table in ("snapshot_view", "point_change"):
        op.execute(f"-- squawk-ignore ban-drop-table\nDROP TABLE venn_admit.{table}")
