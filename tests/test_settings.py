"""The settings: what the environment may say, and what is refused."""

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import open_folder
from venn_admit.errors import InvalidInputError
from venn_admit.runtime.home import default_home
from venn_admit.runtime.settings import FIELDS, days, get_settings, secret_addresses, unknown_variables, variable
from venn_admit.secrets import mask
from venn_admit_workers import tasks


def refusal(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> str:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInputError) as caught:
        get_settings()
    return str(caught.value)


def test_nothing_need_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENN_ADMIT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    settings = get_settings()
    assert settings.home == Path("/data/venn-admit")
    assert settings.database_url is None
    assert settings.broker_url is None
    assert settings.worker_concurrency is None
    assert (settings.chunk_rows, settings.lease_seconds, settings.max_attempts) == (2048, 30, 3)
    assert (settings.recalibrate_quiet_seconds, settings.recalibrate_wait_seconds) == (30, 300)
    assert (settings.retry_seconds, settings.keep_calibrations, settings.decisions_kept_for) == (1, None, None)


def test_home_is_in_the_users_data_folder_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENN_ADMIT_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert get_settings().home == Path.home() / ".local/share/venn-admit"


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's data may lie outside of the home")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter; root's folders outside of a home are in its `shared`."""
    monkeypatch.delenv("VENN_ADMIT_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with open_folder() as folder:
        monkeypatch.setattr("venn_admit.runtime.home._HOME_FOR_ROOT", folder / "shared")
        yield folder


def chosen(home: Path) -> Path:
    """The folder that somebody with this home gets by default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        return default_home().expanduser()


def made(folder: Path, *, mode: int = 0o755, owner: int = 0) -> Path:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    os.chown(folder, owner, -1)
    return folder


@as_root
def test_roots_data_are_below_its_home_if_the_server_can_pass(place: Path) -> None:
    home = made(place / "home")
    assert chosen(home) == home / ".local/share/venn-admit"


@as_root
def test_homes_that_root_cannot_use_never_share_a_folder(place: Path) -> None:
    homes = [made(place / "a/ann", mode=0o700), made(place / "b/ann", mode=0o700), made(place / "bob jr", owner=1000)]
    folders = [chosen(home) for home in homes]
    assert [chosen(home) for home in homes] == folders
    os.chown(homes[0], 1000, -1)
    folders.append(chosen(homes[0]))
    assert len(set(folders)) == 4
    assert {folder.parent for folder in folders} == {place / "shared/homes"}
    assert [folder.name.rpartition("-")[0] for folder in folders] == ["ann", "ann", "bob-jr", "ann"]


@as_root
def test_root_finds_its_data_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a home that was open and is closed now, and the other way round; by its own home where they always were."""
    closed = made(place / "closed", mode=0o700)
    kept = made(closed / ".local/share/venn-admit/postgres", owner=1).parent
    assert chosen(closed) == kept
    opened = made(place / "opened", mode=0o700)
    kept = made(chosen(opened) / "postgres", owner=1).parent
    opened.chmod(0o755)
    assert chosen(opened) == kept
    own = made(place / "own", mode=0o700)
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_dir=str(own)))
    assert chosen(own) == place / "shared"


@as_root
def test_root_leaves_the_data_of_a_homes_owner_alone(place: Path) -> None:
    home = made(place / "home", owner=1000)
    theirs = made(home / ".local/share/venn-admit/postgres", owner=1000).parent
    assert chosen(home) != theirs


def test_the_environment_is_read_once_until_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_CHUNK_ROWS", "7")
    assert get_settings().chunk_rows == 7
    monkeypatch.setenv("VENN_ADMIT_CHUNK_ROWS", "8")
    assert get_settings().chunk_rows == 7
    get_settings.cache_clear()
    assert get_settings().chunk_rows == 8


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FIELDS:
        monkeypatch.setenv(variable(name), "")
    assert get_settings().database_url is None
    assert get_settings().chunk_rows == 2048


def test_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VENN_ADMIT_HOME", "state")
    assert get_settings().home == tmp_path / "state"
    get_settings.cache_clear()
    monkeypatch.setenv("VENN_ADMIT_HOME", "~/state")
    assert get_settings().home == Path.home() / "state"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VENN_ADMIT_CHUNK_ROWS", "0"),
        ("VENN_ADMIT_CHUNK_ROWS", "many"),
        ("VENN_ADMIT_LEASE_SECONDS", "-1"),
        ("VENN_ADMIT_MAX_ATTEMPTS", "1.5"),
        ("VENN_ADMIT_RETRY_SECONDS", "-1"),
        ("VENN_ADMIT_RETRY_SECONDS", "inf"),
        ("VENN_ADMIT_RECALIBRATE_QUIET_SECONDS", "-1"),
        ("VENN_ADMIT_RECALIBRATE_WAIT_SECONDS", "nan"),
        ("VENN_ADMIT_KEEP_CALIBRATIONS", "0"),
        ("VENN_ADMIT_MEMORY_BUDGET_MB", "1"),
        ("VENN_ADMIT_WORKER_CONCURRENCY", "0"),
        ("VENN_ADMIT_STATEMENT_TIMEOUT_SECONDS", "-1"),
        ("VENN_ADMIT_STATEMENT_TIMEOUT_SECONDS", "2147484"),
        ("VENN_ADMIT_LOCK_TIMEOUT_SECONDS", "2147484"),
        ("VENN_ADMIT_CHUNK_SECONDS", "2147484"),
        ("VENN_ADMIT_LOCK_TIMEOUT_SECONDS", "soon"),
    ],
)
def test_a_bad_number_is_refused_by_name_and_value(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    message = refusal(monkeypatch, name, value)
    assert message.startswith(f"{name}: expected a ")
    assert f"got '{value}'" in message


@pytest.mark.parametrize("value", ["90", "0d", "-1d", "1.5d", "100000d", "3 months"])
def test_an_age_is_a_number_of_days(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    message = refusal(monkeypatch, "VENN_ADMIT_KEEP_DECISIONS", value)
    assert message.startswith("VENN_ADMIT_KEEP_DECISIONS: expected a number of days from 1d to 99999d, such as 90d")
    assert f"got '{value}'" in message
    with pytest.raises(InvalidInputError, match=f"such as 90d, got '{value}'"):
        days(value)


def test_days_are_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_KEEP_DECISIONS", "90d")
    assert get_settings().decisions_kept_for == days("90d") == timedelta(days=90)


def test_the_reference_says_what_workers_read_of_what_beat_starts() -> None:
    read = set(re.findall(r"settings\.(\w+)", Path(tasks.__file__).read_text("utf-8")))
    names = {"keep_decisions" if name == "decisions_kept_for" else name for name in read}
    assert names >= {"monitor_webhook", "keep_decisions"}
    assert [name for name in sorted(names) if "workers" not in FIELDS[name].metadata["description"]] == []


def test_a_home_of_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, "VENN_ADMIT_HOME", "~no-such-user/state")
    assert "VENN_ADMIT_HOME" in message
    assert "absolute path" in message


def test_a_bad_address_is_refused_without_showing_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (
        "hooks.example.org/hunter2",
        "https://me:hunter2@hooks.example.org",
        "https://hooks.example.org:port/hunter2",
    )
    for url in wrong:
        hook = refusal(monkeypatch, "VENN_ADMIT_MONITOR_WEBHOOK", url)
        assert "VENN_ADMIT_MONITOR_WEBHOOK: expected https://host/path" in hook
        assert "hunter2" not in hook
    get_settings.cache_clear()
    monkeypatch.delenv("VENN_ADMIT_MONITOR_WEBHOOK")
    monkeypatch.setenv("VENN_ADMIT_BROKER_URL", "hunter2")
    message = refusal(monkeypatch, "VENN_ADMIT_DATABASE_URL", "mysql://me:hunter2@host/db")
    assert "VENN_ADMIT_DATABASE_URL: expected postgresql://" in message
    assert "VENN_ADMIT_BROKER_URL: expected redis://" in message
    assert "hunter2" not in message


def test_a_token_is_masked_as_a_whole() -> None:
    addresses = secret_addresses({"VENN_ADMIT_REVIEW_TOKEN": "6d2f0b7c9a", "VENN_ADMIT_BROKER_URL": "redis://host"})
    assert mask("Token 6d2f0b7c9a for redis://host", *addresses) == "Token *** for redis://host"


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("VENN_ADMIT_BROKER_URL", "amqp://me:hunter2@host//")
    assert "hunter2" not in repr(get_settings())


def test_a_variable_that_is_no_setting_is_named_with_the_nearest_that_is_one() -> None:
    misspelt, invented = unknown_variables(["VENN_ADMIT_QUIET", "VENN_ADMIT_DATABSE_URL", "PATH", "VENN_ADMIT"])
    assert "VENN_ADMIT_DATABSE_URL has no effect" in misspelt
    assert "did you mean VENN_ADMIT_DATABASE_URL?" in misspelt
    assert "VENN_ADMIT_QUIET has no effect" in invented
    assert "did you mean" not in invented


def test_variables_of_settings_and_of_the_tests_are_known() -> None:
    names = map(variable, FIELDS)
    assert unknown_variables([*names, "venn_admit_home", "VENN_ADMIT_TEST_DATABASE_URL"]) == []
