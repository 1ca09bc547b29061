"""`db grant-reader` lets a role read the schema report, `db grant-service` run the service."""

import uuid
from pathlib import Path

import pytest

from tests.cli.databases import on_database
from tests.conftest import administration


@pytest.mark.parametrize(
    ("verb", "words", "group"),
    [
        ("grant-reader", "may read the schema report", "venn_admit_reader"),
        ("grant-service", "may run commands and workers", "venn_admit_service"),
    ],
)
def test_a_role_is_made_a_member(database: str, tmp_path: Path, verb: str, words: str, group: str) -> None:
    program = on_database(database, tmp_path)
    role = f"member_{uuid.uuid4().hex[:12]}"
    with administration(database) as execute:
        execute(f"CREATE ROLE {role}")
        try:
            assert program("db", verb, role).stdout == f"Role {role} {words}.\n"
            told = program("db", verb, role, "--json").result
            assert told == {"role": role, "member_of": group}
        finally:
            execute(f"DROP ROLE {role}")


def test_a_role_that_does_not_exist_is_not_found(database: str, tmp_path: Path) -> None:
    outcome = on_database(database, tmp_path)("db", "grant-reader", "nobody")
    assert outcome.code == 3
    assert "the server has no role 'nobody': create it first" in outcome.stderr
