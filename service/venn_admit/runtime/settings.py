"""Settings from the environment (`VENN_ADMIT_*`). This is the one place that reads it, on behalf of the shells."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import AfterValidator, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from venn_admit.errors import InvalidInputError
from venn_admit.runtime.home import default_home

PREFIX = "VENN_ADMIT_"
_TEST_PREFIX = f"{PREFIX}TEST_"  # what the test suite reads
_DATABASE = r"(postgresql|postgres|postgresql\+psycopg)(://|\Z)"
_SECRET = ("database_url", "broker_url", "monitor_webhook")
_PASSWORD_FILE = f"{PREFIX}DATABASE_PASSWORD_FILE"
_DAYS = r"[1-9]\d{0,4}d\Z"
MOST_DAYS = 99_999
_DAYS_EXPECTED = f"a number of days from 1d to {MOST_DAYS}d, such as 90d"


def days(text: str) -> timedelta:
    """Return a number of days, such as `90d`, as a time.

    Raises:
        InvalidInputError: The text is not a number of days.
    """
    if not re.match(_DAYS, text):
        raise InvalidInputError(f"expected {_DAYS_EXPECTED}, got {text!r}")
    return timedelta(days=int(text[:-1]))


def _matching(pattern: str, expected: str) -> AfterValidator:
    """A check that a text, if there is one, begins as a pattern says."""

    def check(value: str | None) -> str | None:
        if value is not None and not re.match(pattern, value):
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


class Settings(BaseSettings):
    """The settings of an operator. Each field is read from VENN_ADMIT_<FIELD>; an empty variable counts as unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True)

    home: Path = Field(
        default_factory=default_home,
        description="Folder of the embedded Postgres, the caches and the logs; `~` is expanded.",
    )
    database_url: Annotated[str | None, _matching(_DATABASE, "postgresql://user:password@host:port/database")] = Field(
        default=None,
        repr=False,
        description="postgresql://..., Postgres 15 or newer with pgvector 0.7 or newer; run `venn-admit db "
        "upgrade` on it; unset: the embedded Postgres.",
    )
    database_password_file: Path | None = Field(
        default=None,
        description="File with the password for database_url, such as a secret of Docker or Kubernetes; "
        "a line break at its end is ignored; unset: the address holds the password, or none is needed.",
    )
    broker_url: Annotated[
        str | None, _matching(".*://", "redis://host:port/number or amqp://user:password@host:port//")
    ] = Field(
        default=None,
        repr=False,
        description="redis://..., with `venn-admit[redis]` installed, or amqp://...; unset: the database serves as the "
        "broker.",
    )
    chunk_rows: int = Field(default=2048, ge=1, description="Rows of a job that one worker claims at a time.")
    lease_seconds: int = Field(
        default=30,
        ge=1,
        description="Seconds for which a worker claims a chunk; it renews the claim while it lives. "
        "After that, another worker may claim the chunk.",
    )
    chunk_seconds: int = Field(default=3600, ge=1, description="Seconds after which a worker gives up on a chunk.")
    max_attempts: int = Field(default=3, ge=1, description="Attempts at a chunk before it counts as failed.")
    retry_seconds: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds before a failed chunk is tried again; doubled for each further attempt.",
    )
    recalibrate_quiet_seconds: float = Field(
        default=30.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds without further labels or data after which a recalibration starts automatically.",
    )
    recalibrate_wait_seconds: float = Field(
        default=300.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds after the first new label or data at which a recalibration starts even if more keep "
        "arriving.",
    )
    keep_calibrations: int | None = Field(
        default=None,
        ge=1,
        description="How many of a setting's newest calibrations are kept, beside those that decisions or jobs refer "
        "to; unset: all.",
    )
    keep_decisions: Annotated[str | None, _matching(_DAYS, _DAYS_EXPECTED)] = Field(
        default=None,
        description="How many days jobs are kept after they ended, with the decisions that they asked for, such as "
        "90d; `venn-admit beat` has older ones removed, except for decisions on exemplars that have been labelled; "
        "unset: for ever.",
    )
    monitor_webhook: Annotated[str | None, _matching("https?://", "https://host/path or http://host/path")] = Field(
        default=None,
        repr=False,
        description="https://... or http://..., to which `venn-admit beat` has each new alarm of a monitor sent, once; "
        "unset: none is sent.",
    )
    oidc_issuer: str | None = Field(
        default=None,
        description="https://..., an OpenID Connect issuer whose tokens the HTTP service accepts beside keys, with "
        "`venn-admit[oidc]` installed; unset: keys alone.",
    )
    oidc_audience: str | None = Field(
        default=None, description="The audience that a token must be for; needed with an issuer."
    )
    oidc_scope_claim: str = Field(
        default="scope",
        min_length=1,
        description="The claim of a token that lists its scopes: venn-admit:read, venn-admit:score, venn-admit:write "
        "or venn-admit:admin.",
    )
    oidc_classifier_claim: str | None = Field(
        default=None,
        description="The claim that names the one classifier that a token is for, or * for all, and without which it "
        "is refused; unset: tokens are for all.",
    )
    requests_per_minute: int = Field(
        default=6000,
        ge=0,
        description="Requests that one key may send to one process a minute, those to decide aside; 0: any number.",
    )
    decisions_per_minute: int = Field(
        default=600_000,
        ge=0,
        description="Requests to decide that one key may send to one process a minute; 0: any number.",
    )
    requests_burst: int = Field(
        default=1000, ge=1, description="Requests of either kind that one key may send at once, before the rate counts."
    )
    concurrent_requests: int = Field(
        default=200, ge=0, description="Requests that one process answers at once; 0: any number."
    )
    concurrent_requests_per_key: int = Field(
        default=32, ge=0, description="Requests of one key that one process answers at once; 0: any number."
    )
    idempotency_hours: int = Field(
        default=24,
        ge=1,
        le=24 * 365,
        description="Hours for which the answer to a request with an Idempotency-Key is kept, and given again.",
    )
    audit_client_addresses: bool = Field(
        default=False, description="Whether the audit ledger also says which address a request came from."
    )
    memory_budget_mb: int = Field(
        default=512, ge=16, description="MiB that one computation, or reading a file, may take."
    )
    body_budget_mb: int = Field(
        default=256,
        ge=32,
        description="MiB that the bodies of requests which one process is answering may take together, files aside; "
        "what they are parsed to takes several times as much.",
    )
    device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description="Where workers, and jobs computed without them, multiply vectors to find neighbours: cpu, or cuda "
        "for a GPU, which is experimental and gives the same neighbours.",
    )
    upload_mb: int = Field(default=1024, ge=1, description="MiB that a file sent over HTTP may have.")
    upload_seconds: float = Field(
        default=600.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds within which a file sent over HTTP must arrive.",
    )
    jobs_per_key: int = Field(
        default=4,
        ge=1,
        description="Most jobs that a key may have running at a time, files to score and fits together, in all "
        "processes of the service.",
    )
    worker_concurrency: int | None = Field(default=None, ge=1, description="Processes of a worker; unset: one per CPU.")
    statement_timeout_seconds: int = Field(
        default=600, ge=0, description="Seconds after which Postgres cancels a statement; 0: never."
    )
    lock_timeout_seconds: int = Field(
        default=60, ge=0, description="Seconds after which Postgres gives up waiting for a lock; 0: never."
    )
    database_pool_size: int = Field(
        default=8,
        ge=1,
        description="Most connections to the database that each process keeps open; under load it opens up to four "
        "more, and beyond that requests wait for one.",
    )

    stop_with_stdin: bool = Field(
        default=False,
        description="Whether a worker ends when its standard input does; for programs that start a worker.",
    )

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        try:
            return home.expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(f"{error}; give an absolute path") from error

    @property
    def decisions_kept_for(self) -> timedelta | None:
        """How long jobs and their decisions are kept; None: for ever."""
        return None if self.keep_decisions is None else days(self.keep_decisions)


@cache
def get_settings() -> Settings:
    """Return the settings of this process, read once; `get_settings.cache_clear()` makes the next call read again.

    Raises:
        InvalidInputError: A variable holds a value that its setting does not accept.
    """
    return read_settings()


def read_settings(**given: Any) -> Settings:
    """Return the settings: those given by name, and the others from the environment.

    Raises:
        InvalidInputError: A value is not one that its setting accepts.
    """
    try:
        return Settings(**given)
    except ValidationError as error:
        # Without the chain: pydantic's own text would print addresses with their passwords.
        raise InvalidInputError("; ".join(_problem(dict(line)) for line in error.errors())) from None


def secret_addresses(environment: Mapping[str, str]) -> list[str]:
    """Return the addresses that may contain a password, whether or not the settings are valid.

    They are values in the environment; the password in a file is returned as part of an address.
    """
    names = {f"{PREFIX}{field.upper()}" for field in _SECRET}
    addresses = [value for name, value in environment.items() if name.upper() in names]
    files = [value for name, value in environment.items() if name.upper() == _PASSWORD_FILE and value]
    passwords = filter(None, map(_password_in, files))
    return [*addresses, *(f"postgresql://:{quote(password, safe='')}@" for password in passwords)]


def _password_in(file: str) -> str:
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):  # no command could use it either: each refuses the file, by its name
        return ""


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return a line for each environment variable that looks like a setting but is not one, such as a misspelt one."""
    known = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    # As pydantic reads them, in upper or lower case.
    unknown = [name for name in sorted(names) if name.upper().startswith(PREFIX) and name.upper() not in known]
    return [_unknown_variable(name, known) for name in unknown if not name.upper().startswith(_TEST_PREFIX)]


def _unknown_variable(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name.upper(), known, n=1, cutoff=0.8)
    hint = f"did you mean {close[0]}?" if close else "unset it, or see the reference of the settings"
    return f"the environment variable {name} has no effect, because venn-admit has no such setting: {hint}"


def _problem(line: dict[str, Any]) -> str:
    name = str(line["loc"][0])
    came = "" if name in _SECRET else f", got {line['input']!r}"
    return f"{PREFIX}{name.upper()}: {line['msg'].removeprefix('Value error, ')}{came}; correct or unset it"
