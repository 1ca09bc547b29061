"""The settings: what the environment may say, and what is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from venn_admit.service.errors import InvalidInputError
from venn_admit.service.settings import Settings, days, get_settings, unknown_variables


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


def test_home_of_root_is_out_of_its_own_unless_its_data_are_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VENN_ADMIT_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert get_settings().home == Path("/var/lib/venn-admit")
    data = tmp_path / ".local/share/venn-admit/postgres"
    data.mkdir(parents=True)
    get_settings.cache_clear()
    assert get_settings().home == data.parent


def test_the_environment_is_read_once_until_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENN_ADMIT_CHUNK_ROWS", "7")
    assert get_settings().chunk_rows == 7
    monkeypatch.setenv("VENN_ADMIT_CHUNK_ROWS", "8")
    assert get_settings().chunk_rows == 7
    get_settings.cache_clear()
    assert get_settings().chunk_rows == 8


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.setenv(f"VENN_ADMIT_{name.upper()}", "")
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
        ("VENN_ADMIT_LOCK_TIMEOUT_SECONDS", "soon"),
    ],
)
def test_a_bad_number_is_refused_by_name_and_value(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    message = refusal(monkeypatch, name, value)
    assert message.startswith(f"{name}: Input should be ")
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


def test_a_home_of_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, "VENN_ADMIT_HOME", "~no-such-user/state")
    assert "VENN_ADMIT_HOME" in message
    assert "absolute path" in message


def test_a_bad_address_is_refused_without_showing_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = refusal(monkeypatch, "VENN_ADMIT_MONITOR_WEBHOOK", "hooks.example.org/hunter2")
    assert "VENN_ADMIT_MONITOR_WEBHOOK: expected https://host/path" in hook
    assert "hunter2" not in hook
    get_settings.cache_clear()
    monkeypatch.delenv("VENN_ADMIT_MONITOR_WEBHOOK")
    monkeypatch.setenv("VENN_ADMIT_BROKER_URL", "hunter2")
    message = refusal(monkeypatch, "VENN_ADMIT_DATABASE_URL", "mysql://me:hunter2@host/db")
    assert "VENN_ADMIT_DATABASE_URL: expected postgresql://" in message
    assert "VENN_ADMIT_BROKER_URL: expected redis://" in message
    assert "hunter2" not in message


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
    names = [f"VENN_ADMIT_{field.upper()}" for field in Settings.model_fields]
    assert unknown_variables([*names, "venn_admit_home", "VENN_ADMIT_TEST_DATABASE_URL"]) == []
