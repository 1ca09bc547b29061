"""A chain keeps what its labels show against what it certified.

Why: what is certified stays so until an alarm is raised, and monitors count labels of decided points alone. Labels that
were ingested, and showed that far fewer than promised are right, were counted and nobody was told. Chains from before
play against what is certified from the next label on, or with all of them once labels are counted again. A program from
before would drop what labels showed, and cannot read a certificate that says it.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None

COLUMNS = {
    ("standing_state", "against", "json"): (
        "The game against what is certified, as the core writes it; null before a document counts in it."
    ),
    ("standing_chain", "restarts", "integer[] NOT NULL DEFAULT '{}'"): (
        "Numbers of documents after which the games against what is certified started again, ascending."
    ),
    ("monitor", "chain_event", "bigint"): (
        "Last label event that the chain in use had seen when it was looked at; null if there was none."
    ),
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for (table, name, kind), comment in COLUMNS.items():
        op.execute(f"ALTER TABLE venn_admit.{table} ADD COLUMN {name} {kind}")
        op.execute(f"COMMENT ON COLUMN venn_admit.{table}.{name} IS '{comment}'")
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute(oldest_program("0100"))
    for table, name, _ in COLUMNS:
        op.execute(f"-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.{table} DROP COLUMN {name}")
