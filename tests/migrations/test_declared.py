"""Fields of the evidence and settings that the program declares are columns that the migrations make."""

from collections.abc import Iterator
from enum import StrEnum

from sqlalchemy import Engine, text

from docs.generate.tables import column_type
from venn_admit.core.calibrators.arguments import ALL_DECLARED, about, column_of
from venn_admit.core.calibrators.declaration import SettingKind
from venn_admit.core.calibrators.settings import DECLARED
from venn_admit.core.evidence import EVIDENCE, SHARED, Kind
from venn_admit.store.database.tables import tables

OF_FIELDS = {
    **dict.fromkeys((Kind.INTEGER, Kind.CLASS), "integer"),
    **dict.fromkeys((Kind.REAL, Kind.UNBOUNDED), "double precision"),
    Kind.REASON: "text",
    Kind.INTEGERS: "integer[]",
    Kind.UNBOUNDEDS: "double precision[]",
    Kind.BITS: "bit varying",
}
OF_SETTINGS = {
    SettingKind.DECIMAL: "numeric",
    SettingKind.NUMBER: "double precision",
    SettingKind.INTEGER: "integer",
    SettingKind.WORD: "text",
    SettingKind.FLAG: "boolean",
}
CHECKS = """
SELECT conname, count(*), count(DISTINCT pg_get_constraintdef(oid))
FROM pg_constraint
WHERE conname = ANY(:names)
GROUP BY conname
"""


def columns(table: str) -> dict[str, tuple[str, str | None]]:
    """Type and comment of each column of a table."""
    return {one.name: (column_type(one), one.comment) for one in tables().tables[f"venn_admit.{table}"].columns}


def test_fields_of_the_evidence_are_columns() -> None:
    for table, fields in [("decision", SHARED), *((one.table, one.fields) for one in EVIDENCE.values())]:
        found = columns(table)
        for field in fields:
            null = ", null" if field.nullable else ""
            assert found.pop(field.name) == (f"{OF_FIELDS[field.kind]}{null}", field.meaning)
        assert table == "decision" or list(found) == ["decision_id"]


def test_settings_are_columns() -> None:
    """The comment of one that was added says what it is about."""
    found = columns("calibrator")
    for name, declared in ALL_DECLARED.items():
        optional = declared.added or any(name not in of_method for of_method in DECLARED.values())
        kind, comment = found[column_of(name)]
        assert kind == f"{OF_SETTINGS[declared.kind]}{'[]' * declared.many}{', null' * optional}", name
        assert comment == f"{about(name)}." or not declared.added


def test_the_history_compares_every_setting(engine: Engine) -> None:
    with engine.connect() as connection:
        view = connection.execute(text("SELECT pg_get_viewdef('venn_admit.snapshot_change_v1'::regclass)")).scalar_one()
    missing = [name for name in ALL_DECLARED if f"asked.{column_of(name)}" not in view]
    assert missing == [], "define snapshot_change_v1 again, with these"


def rules() -> Iterator[tuple[str, str]]:
    """The range of each setting that was added, as it is declared, by the name of its check."""
    for name, declared in ALL_DECLARED.items():
        column, words = column_of(name), declared.words
        check = f"calibrator_{column}_check"
        if declared.added and isinstance(words, type) and issubclass(words, StrEnum):
            yield check, f"{column} IN ({str([str(word) for word in words])[1:-1]})"
        elif declared.added and declared.many:
            yield check, f"{declared.least} <= ALL ({column}) AND {declared.most} >= ALL ({column})"
        elif declared.added and declared.least is not None:
            yield check, f"{column} >= {declared.least}"


def test_ranges_of_added_settings_are_checks(engine: Engine) -> None:
    checks = dict(rules())
    assert len(checks) > 3
    with engine.connect() as connection:
        connection.execute(text("CREATE TEMPORARY TABLE declared (LIKE venn_admit.calibrator)"))
        for name, rule in checks.items():
            connection.execute(text(f"ALTER TABLE declared ADD CONSTRAINT {name} CHECK ({rule})"))
        found = connection.execute(text(CHECKS), {"names": list(checks)}).all()
    assert {tuple(row) for row in found} == {(name, 2, 1) for name in checks}
