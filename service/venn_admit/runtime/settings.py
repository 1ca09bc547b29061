"""Settings from the environment (`VENN_ADMIT_*`). This is the one place that reads it, on behalf of the shells."""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Meta, ValidationError, convert

from venn_admit.errors import InvalidInputError
from venn_admit.runtime.home import default_home
from venn_admit.secrets import address_of

PREFIX = "VENN_ADMIT_"
_TEST_PREFIX = f"{PREFIX}TEST_"  # what the test suite reads
_DATABASE = r"^(postgresql|postgres|postgresql\+psycopg)(://|\Z)"
_PASSWORD_FILE = f"{PREFIX}DATABASE_PASSWORD_FILE"
_TOKEN = f"{PREFIX}REVIEW_TOKEN"
_DAYS = r"^[1-9]\d{0,4}d\Z"
MOST_DAYS = 99_999
_DAYS_EXPECTED = f"a number of days from 1d to {MOST_DAYS}d, such as 90d"
_MOST_SECONDS = (2**31 - 1) // 1000  # Postgres keeps a timeout as milliseconds in an int4


def days(text: str) -> timedelta:
    """Return a number of days, such as `90d`, as a time.

    Raises:
        InvalidInputError: The text is not a number of days.
    """
    if not re.match(_DAYS, text):
        raise InvalidInputError(f"expected {_DAYS_EXPECTED}, got {text!r}")
    return timedelta(days=int(text[:-1]))


def setting(
    description: str,
    default: Any = MISSING,
    *,
    default_factory: Any = MISSING,
    is_secret: bool = False,
    expected: str | None = None,
    check: Callable[[Any], bool] = lambda _: True,
    **limits: Any,
) -> Any:
    """Declare a setting.

    Args:
        description: What it is, for the reference.
        default: What it is if the environment does not say.
        default_factory: What makes that.
        is_secret: Whether it may hold a password, so that no message shows it.
        expected: What it accepts, if type and limits do not say.
        check: Whether it accepts a value that has the type and is within the limits.
        limits: What its values must be, as `msgspec.Meta` has it.
    """
    metadata = {"description": description, "expected": expected, "check": check, "limits": limits}
    return field(default=default, default_factory=default_factory, repr=not is_secret, metadata=metadata)


def is_webhook(url: str) -> bool:
    """Return whether alarms can be sent to a URL.

    >>> [is_webhook(url) for url in ("https://host/hook", "ftp://host/hook", "https://host:port", "https://me@host/")]
    [True, False, False, False]
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = url.isprintable() and " " not in url
    # urllib would take a user for a part of the host.
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None and is_plain


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an operator; `read_settings` reads each from VENN_ADMIT_<SETTING>."""

    home: Path = setting(  # noqa: RUF009 - it makes a field
        "Folder of the embedded Postgres, the caches and the logs; `~` is expanded.", default_factory=default_home
    )
    database_url: str | None = setting(
        "postgresql://..., Postgres 15 or newer with pgvector 0.7 or newer; run `venn-admit db upgrade` on it; "
        "unset: the embedded Postgres.",
        None,
        pattern=_DATABASE,
        expected="postgresql://user:password@host:port/database",
        is_secret=True,
    )
    database_password_file: Path | None = setting(  # noqa: RUF009 - as above
        "File with the password for database_url, such as a secret of Docker or Kubernetes; a line break at its end "
        "is ignored; unset: the address holds the password, or none is needed.",
        None,
    )
    broker_url: str | None = setting(
        "redis://..., with `venn-admit[redis]` installed, or amqp://...; unset: the database serves as the broker.",
        None,
        pattern=".*://",
        expected="redis://host:port/number or amqp://user:password@host:port//",
        is_secret=True,
    )
    chunk_rows: int = setting("Rows of a job that one worker claims at a time.", 2048, ge=1)
    lease_seconds: int = setting(
        "Seconds for which a worker claims a chunk; it renews the claim while it lives. After that, another worker "
        "may claim the chunk.",
        30,
        ge=1,
    )
    chunk_seconds: int = setting("Seconds after which a worker gives up on a chunk.", 3600, ge=1, le=_MOST_SECONDS)
    max_attempts: int = setting("Attempts at a chunk before it counts as failed.", 3, ge=1)
    retry_seconds: float = setting(
        "Seconds before a failed chunk is tried again; doubled for each further attempt, up to a minute.", 1.0, ge=0
    )
    recalibrate_quiet_seconds: float = setting(
        "Seconds without further labels or data after which workers recalibrate while `venn-admit beat` runs.",
        30.0,
        ge=0,
    )
    recalibrate_wait_seconds: float = setting(
        "Seconds after the first new label or data at which workers recalibrate even if more keep arriving.",
        300.0,
        ge=0,
    )
    keep_calibrations: int | None = setting(
        "How many of a setting's newest calibrations are kept, beside its current one and those that decisions or jobs "
        "refer to; unset: all.",
        None,
        ge=1,
    )
    keep_decisions: str | None = setting(
        "How many days jobs are kept after they ended, with the decisions that they asked for, such as 90d; "
        "workers remove older ones while `venn-admit beat` runs, except for decisions on points with a random label or "
        "one of a review, and on points drawn to be audited; unset: for ever.",
        None,
        pattern=_DAYS,
        expected=_DAYS_EXPECTED,
    )
    monitor_webhook: str | None = setting(
        "https://... or http://..., to which workers send each new alarm and notice of a monitor, once, while "
        "`venn-admit beat` runs; unset: none is sent.",
        None,
        check=is_webhook,
        expected="https://host/path or http://host/path, without a user",
        is_secret=True,
    )
    review_token: str | None = setting(
        "Token of Label Studio or API key of Argilla, with which `venn-admit review push` and `venn-admit review pull` "
        "ask these; unset: they prompt for it.",
        None,
        is_secret=True,
    )
    oidc_issuer: str | None = setting(
        "https://..., an OpenID Connect issuer whose tokens the HTTP service accepts beside keys, with "
        "`venn-admit[oidc]` installed; unset: keys alone.",
        None,
    )
    oidc_audience: str | None = setting("The audience that a token must be for; needed with an issuer.", None)
    oidc_scope_claim: str = setting(
        "The claim of a token that lists its scopes: venn-admit:read, venn-admit:score, venn-admit:write or "
        "venn-admit:admin.",
        "scope",
        min_length=1,
    )
    oidc_classifier_claim: str | None = setting(
        "The claim that names the one classifier that a token is for, or * for all, and without which it is refused;"
        " unset: tokens are for all.",
        None,
    )
    root_path: str = setting(
        "Path under which a proxy serves the HTTP service, such as /venn, and which it takes away from requests.",
        "",
        pattern=r"^(/[A-Za-z0-9._~-]+)*\Z",
        expected="a path such as /venn, without a slash at its end",
    )
    requests_per_minute: int = setting(
        "Requests that one key may send to one process a minute, those to decide aside; 0: any number.", 6000, ge=0
    )
    decisions_per_minute: int = setting(
        "Requests to decide that one key may send to one process a minute; 0: any number.", 600_000, ge=0
    )
    requests_burst: int = setting(
        "Requests of either kind that one key may send at once, before the rate counts.", 1000, ge=1
    )
    concurrent_requests: int = setting("Requests that one process answers at once; 0: any number.", 200, ge=0)
    concurrent_requests_per_key: int = setting(
        "Requests of one key that one process answers at once; 0: any number.", 32, ge=0
    )
    idempotency_hours: int = setting(
        "Hours for which the answer to a request with an Idempotency-Key is kept, and given again.",
        24,
        ge=1,
        le=24 * 365,
    )
    audit_client_addresses: bool = setting(
        "Whether the audit ledger also says which address a request came from.", False
    )
    memory_budget_mb: int = setting("MiB that one computation, or reading a file, may take.", 512, ge=16)
    body_budget_mb: int = setting(
        "MiB that the bodies of requests which one process is answering may take together, files aside; what they "
        "are parsed to takes several times as much.",
        256,
        ge=32,
    )
    device: Literal["cpu", "cuda"] = setting(
        "Where workers, and jobs computed without them, multiply vectors to find neighbours: cpu, or cuda for a GPU,"
        " which is experimental and gives the same neighbours.",
        "cpu",
    )
    upload_mb: int = setting("MiB that a file sent over HTTP may have.", 1024, ge=1)
    upload_seconds: float = setting("Seconds within which a file sent over HTTP must arrive.", 600.0, gt=0)
    jobs_per_key: int = setting(
        "Most jobs that a key may have running at a time, files to score and fits together, in all processes of the "
        "service.",
        4,
        ge=1,
    )
    worker_concurrency: int | None = setting("Processes of a worker; unset: one per CPU.", None, ge=1)
    statement_timeout_seconds: int = setting(
        "Seconds after which Postgres cancels a statement; 0: never.", 600, ge=0, le=_MOST_SECONDS
    )
    lock_timeout_seconds: int = setting(
        "Seconds after which Postgres gives up waiting for a lock; 0: never.", 60, ge=0, le=_MOST_SECONDS
    )
    database_pool_size: int = setting(
        "Most connections to the database that each process keeps open; under load it opens up to four more, and "
        "beyond that requests wait for one.",
        8,
        ge=1,
    )
    stop_with_stdin: bool = setting(
        "Whether a worker ends when its standard input does; for programs that start a worker.", False
    )

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "home", self.home.expanduser().absolute())
        except RuntimeError as error:
            raise InvalidInputError(f"{PREFIX}HOME: {error} Give an absolute path") from error

    @property
    def decisions_kept_for(self) -> timedelta | None:
        """How long jobs and their decisions are kept; None: for ever."""
        return None if self.keep_decisions is None else days(self.keep_decisions)


FIELDS = {one.name: one for one in fields(Settings)}
_SECRET = tuple(name for name, one in FIELDS.items() if not one.repr)


@cache
def get_settings() -> Settings:
    """Return the settings of this process, read once; `get_settings.cache_clear()` makes the next call read again.

    Raises:
        InvalidInputError: A variable holds a value that its setting does not accept.
    """
    return read_settings()


def read_settings(**given: Any) -> Settings:
    """Return the settings: those given by name, and the others from the environment, in which case does not matter.

    An empty variable counts as unset.

    Raises:
        InvalidInputError: A value is not one that its setting accepts.
    """
    values, problems = {}, []
    for name, value in (_in_environment() | given).items():
        try:
            values[name] = _converted(FIELDS[name], value)
        except ValidationError:  # whose text would show passwords
            received = "" if name in _SECRET else f", got {value!r}"
            where, how = (name, "") if name in given else (variable(name), "; correct or unset it")
            problems.append(f"{where}: expected {accepted(name)}{received}{how}")
    if problems:
        raise InvalidInputError("; ".join(problems))
    return Settings(**values)


def variable(setting: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{setting.upper()}"


def _in_environment() -> dict[str, str]:
    found = {name.upper(): value for name, value in os.environ.items() if value}
    return {name: found[variable(name)] for name in FIELDS if variable(name) in found}


def _converted(declared: Field[Any], value: Any) -> Any:
    kind: Any = Annotated[_kind(declared), Meta(**declared.metadata["limits"])]
    converted = convert(value, kind, strict=False, dec_hook=lambda path, text: path(text))
    if converted in (math.inf, -math.inf) or not declared.metadata["check"](converted):
        raise ValidationError
    return converted


def _kind(declared: Field[Any]) -> Any:
    """The type of a setting that is set."""
    return get_args(declared.type)[0] if isinstance(declared.type, UnionType) else declared.type


_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most"}


def accepted(setting: str) -> str:
    """Return the values that a setting accepts, in words.

    >>> accepted("idempotency_hours"), accepted("device"), accepted("keep_decisions")
    ('a whole number, at least 1, at most 8760', 'cpu or cuda', 'a number of days from 1d to 99999d, such as 90d')
    """
    kind, metadata = _kind(FIELDS[setting]), FIELDS[setting].metadata
    limits = [f"{words} {metadata['limits'][name]}" for name, words in _LIMITS.items() if name in metadata["limits"]]
    return metadata["expected"] or ", ".join([_WORDS.get(kind) or " or ".join(get_args(kind)), *limits])


def secret_addresses(environment: Mapping[str, str]) -> list[str]:
    """Return the addresses that may contain a password, whether or not the settings are valid.

    They are values in the environment; a token, and the password in a file, are returned as part of an address.
    """
    names = set(map(variable, _SECRET))
    secrets = [(name.upper(), value) for name, value in environment.items() if name.upper() in names and value]
    addresses = [address_of(value) if name == _TOKEN else value for name, value in secrets]
    files = [value for name, value in environment.items() if name.upper() == _PASSWORD_FILE and value]
    passwords = filter(None, map(_password_in, files))
    return [*addresses, *map(address_of, passwords)]


def _password_in(file: str) -> str:
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):  # no command could use it either: each refuses the file, by its name
        return ""


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return a line for each environment variable that looks like a setting but is not one, such as a misspelt one."""
    known = set(map(variable, FIELDS))
    unknown = [name for name in sorted(names) if name.upper().startswith(PREFIX) and name.upper() not in known]
    return [_unknown_variable(name, known) for name in unknown if not name.upper().startswith(_TEST_PREFIX)]


def _unknown_variable(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name.upper(), known, n=1, cutoff=0.8)
    hint = f"did you mean {close[0]}?" if close else "unset it, or see the reference of the settings"
    return f"the environment variable {name} has no effect, because venn-admit has no such setting: {hint}"
