"""The password of the database from a file, as Docker and Kubernetes hand secrets to a program."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.cli.program import Program
from venn_admit.errors import InvalidInputError
from venn_admit.runtime.settings import Settings, secret_addresses
from venn_admit.secrets import mask
from venn_admit.store.database.address import database_url

ADDRESS = "postgresql://me@host/name?sslmode=require"


def settings(file: Path, url: str | None = ADDRESS) -> Settings:
    return Settings(database_url=url, database_password_file=file, home=file.parent)


@pytest.mark.parametrize(
    ("content", "password"),
    [("hunter2", "hunter2"), ("hunter2\n", "hunter2"), (" h@n?t/r%32:ü\r\n", " h@n?t/r%32:ü")],
)
def test_the_password_of_the_file_joins_the_address(tmp_path: Path, content: str, password: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content.encode())
    address = make_url(database_url(settings(file)))
    assert address.password == password
    assert address.render_as_string(hide_password=True) == "postgresql+psycopg://me:***@host/name?sslmode=require"


def test_the_password_of_the_file_opens_the_database(database: str, tmp_path: Path) -> None:
    """The embedded server asks for no password, so this shows that the address still names the same database."""
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    environment = {"VENN_ADMIT_DATABASE_URL": database, "VENN_ADMIT_HOME": str(tmp_path / "home")}
    plain = Program(environment)("db", "status", "--json")
    assert Program(environment | {"VENN_ADMIT_DATABASE_PASSWORD_FILE": str(file)})("db", "status", "--json") == plain


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe"])
def test_a_file_without_a_password_is_refused_by_its_name(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"^VENN_ADMIT_DATABASE_PASSWORD_FILE: {file} (cannot|is empty)"):
        database_url(settings(file))


def test_a_file_is_of_no_use_without_an_address_that_lacks_a_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2")
    with pytest.raises(InvalidInputError, match="is set without VENN_ADMIT_DATABASE_URL"):
        database_url(settings(file, None))
    with pytest.raises(InvalidInputError, match=r"both VENN_ADMIT_DATABASE_URL and .* hold a password") as caught:
        database_url(settings(file, "postgresql://me:hunter3@host/name"))
    assert "hunter" not in str(caught.value)


def test_the_password_of_the_file_is_masked(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("h@n?t/r%32\n")
    addresses = secret_addresses({"VENN_ADMIT_DATABASE_PASSWORD_FILE": str(file)})
    assert mask("refused: h@n?t/r%32 or h%40n%3Ft%2Fr%2532", *addresses) == "refused: *** or ***"
    assert secret_addresses({"VENN_ADMIT_DATABASE_PASSWORD_FILE": str(tmp_path / "missing")}) == []


def test_the_program_shows_no_password_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2+/ab")
    program = Program(
        {
            "VENN_ADMIT_DATABASE_URL": "postgresql://me@127.0.0.1:1/name",
            "VENN_ADMIT_DATABASE_PASSWORD_FILE": str(file),
            "VENN_ADMIT_HOME": str(tmp_path / "home"),
        }
    )
    outcome = program("--debug", "db", "status")
    assert "postgresql://me:***@127.0.0.1:1/name" in outcome.stderr
    assert "hunter2" not in outcome.stderr
