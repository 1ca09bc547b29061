"""Tables are read from the SQL of migrations in the forms that these may have."""

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects import postgresql

from venn_admit.store.database.tables import read_tables

SCRIPT = """
CREATE TABLE venn_admit.one (
    -- Not read: comments come by the statements below.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    names text[] NOT NULL DEFAULT '{}',
    CONSTRAINT one_names_check CHECK (cardinality(names) < 10)
);

COMMENT ON TABLE venn_admit.one IS 'The first''s.';

COMMENT ON COLUMN venn_admit.one.id IS 'Key.';

COMMENT ON COLUMN venn_admit.one.names IS 'Names, before.';

ALTER TABLE venn_admit.one ADD COLUMN score NUMERIC;

COMMENT ON COLUMN venn_admit.one.score IS 'Score.';

ALTER TABLE venn_admit.one ADD CONSTRAINT one_score_check CHECK (
    score > 0
) NOT VALID;

COMMENT ON COLUMN venn_admit.one.names IS 'Names.';

CREATE INDEX CONCURRENTLY one_score_idx ON venn_admit.one (coalesce(score, 0), id) WHERE score IS NOT NULL;
"""


def test_what_a_later_migration_says_counts() -> None:
    (one,) = read_tables(SCRIPT).tables.values()
    assert one.comment == "The first's."
    found = [(each.name, each.type.compile(postgresql.dialect()), each.nullable, each.comment) for each in one.columns]
    assert found == [
        ("id", "BIGINT", False, "Key."),
        ("names", "TEXT[]", False, "Names."),
        ("score", "NUMERIC", True, "Score."),
    ]


def test_an_index_that_is_made_again_after_it_was_dropped_is_one() -> None:
    made = "CREATE INDEX one_names_idx ON venn_admit.one (names{more});\n\n"
    dropped = "DROP INDEX {how}venn_admit.one_names_idx;\n\n"
    for how in ("", "CONCURRENTLY ", "IF EXISTS "):
        script = SCRIPT + made.format(more="") + dropped.format(how=how)
        (gone,) = read_tables(script).tables.values()
        assert {each.name for each in gone.indexes} == {"one_score_idx"}
        (again,) = read_tables(script + made.format(more=", id")).tables.values()
        assert {(each.name, len(each.expressions)) for each in again.indexes} == {
            ("one_score_idx", 2),
            ("one_names_idx", 2),
        }


def test_rules_are_read() -> None:
    (one,) = read_tables(SCRIPT).tables.values()
    rules = {each.name: str(each.sqltext) for each in one.constraints if isinstance(each, CheckConstraint)}
    assert rules == {"one_names_check": "cardinality(names) < 10", "one_score_check": " score > 0 "}


def test_an_index_that_is_built_while_others_write_is_one() -> None:
    (one,) = read_tables(SCRIPT).tables.values()
    (index,) = one.indexes
    assert (index.name, [str(each) for each in index.expressions]) == (
        "one_score_idx",
        ["coalesce(score, 0)", "one.id"],
    )
    assert str(index.dialect_options["postgresql"]["where"]) == "score IS NOT NULL"
