"""`db grant-reader` lets a role read the schema report."""

import uuid
from pathlib import Path

from tests.cli.conftest import on_database
from tests.conftest import administration


def test_a_role_is_let_read(database: str, tmp_path: Path) -> None:
    program = on_database(database, tmp_path)
    role = f"analyst_{uuid.uuid4().hex[:12]}"
    with administration(database) as execute:
        execute(f"CREATE ROLE {role}")
        try:
            assert program("db", "grant-reader", role).stdout == f"Role {role} may read the schema report.\n"
            told = program("db", "grant-reader", role, "--json").result
            assert told == {"role": role, "member_of": "venn_admit_reader"}
        finally:
            execute(f"DROP ROLE {role}")


def test_a_role_that_does_not_exist_is_not_found(database: str, tmp_path: Path) -> None:
    outcome = on_database(database, tmp_path)("db", "grant-reader", "nobody")
    assert outcome.code == 3
    assert "the server has no role 'nobody': create it first" in outcome.stderr
