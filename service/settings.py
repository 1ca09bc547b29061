"""Settings from the environment (`VENN_ADMIT_*`): the one place that reads it, for shells only."""

import os
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import InvalidInputError

PREFIX = "VENN_ADMIT_"
_DATABASE_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_SECRET = ("database_url", "broker_url")


def default_home() -> Path:
    # The XDG folder on every platform: macOS's own has a space in it, which Postgres' starter does not take.
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "venn-admit"


class Settings(BaseSettings):
    """What an operator may set: each field by the variable VENN_ADMIT_<FIELD>, empty meaning unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True)

    home: Path = Field(
        default_factory=default_home,
        description="Folder of the embedded Postgres and of caches; absolute, `~` is expanded.",
    )
    database_url: str | None = Field(
        default=None,
        repr=False,
        description="postgresql://..., 15 or newer with pgvector 0.7 or newer; unset: the embedded one.",
    )
    broker_url: str | None = Field(
        default=None,
        repr=False,
        description="redis://... or amqp://..., Celery's broker; unset: the database is it too.",
    )
    chunk_rows: int = Field(default=2048, ge=1, description="Rows of a job that one worker claims at a time.")
    lease_seconds: int = Field(default=600, ge=1, description="Time after which a claimed chunk may be claimed again.")
    max_attempts: int = Field(default=3, ge=1, description="Claims of a chunk before it counts as failed.")
    retry_seconds: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="Wait before a second claim; doubled for each further one."
    )
    recalibrate_quiet_seconds: float = Field(
        default=30.0,
        ge=0,
        allow_inf_nan=False,
        description="For how long no further labels or data have come when a recalibration starts by itself.",
    )
    recalibrate_wait_seconds: float = Field(
        default=300.0,
        ge=0,
        allow_inf_nan=False,
        description="Time after the first of them when it starts even while more come.",
    )
    keep_calibrations: int | None = Field(
        default=None,
        ge=1,
        description="Snapshots of a setting that are kept, the last ones, beside all that decisions or jobs refer to; "
        "unset: all.",
    )
    memory_budget_mb: int = Field(
        default=512, ge=16, description="MiB that one computation, or reading a file, may take."
    )
    worker_concurrency: int | None = Field(default=None, ge=1, description="Processes of a worker; unset: one a CPU.")
    statement_timeout_seconds: int = Field(
        default=600, ge=0, description="Time after which Postgres cancels a statement; 0: never."
    )
    lock_timeout_seconds: int = Field(
        default=60, ge=0, description="Time after which Postgres gives up waiting for a lock; 0: never."
    )

    stop_with_stdin: bool = Field(
        default=False,
        description="Whether a worker ends when its standard input does; set by a program that starts one for itself.",
    )

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        try:
            return home.expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(f"{error}; give an absolute path") from error

    @field_validator("database_url")
    @classmethod
    def _postgres_url(cls, url: str | None) -> str | None:
        if url is not None and url.partition("://")[0] not in _DATABASE_SCHEMES:
            raise ValueError("expected postgresql://user:password@host:port/database")
        return url

    @field_validator("broker_url")
    @classmethod
    def _broker_url(cls, url: str | None) -> str | None:
        if url is not None and "://" not in url:
            raise ValueError("expected redis://host:port/number or amqp://user:password@host:port//")
        return url


@cache
def get_settings() -> Settings:
    """The settings of this process, read once; `get_settings.cache_clear()` makes the next call read again.

    Raises:
        InvalidInputError: a variable holds what its setting cannot take.
    """
    try:
        return Settings()
    except ValidationError as error:
        # Without the chain: pydantic's own text would print addresses with their passwords.
        raise InvalidInputError("; ".join(_problem(dict(line)) for line in error.errors())) from None


def _problem(line: dict[str, Any]) -> str:
    name = str(line["loc"][0])
    came = "" if name in _SECRET else f", got {line['input']!r}"
    return f"{PREFIX}{name.upper()}: {line['msg'].removeprefix('Value error, ')}{came}; correct or unset it"
