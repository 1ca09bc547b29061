"""Keys for the HTTP service: making, listing, revoking and recognizing them, and the ledger of who did what."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, Row

from venn_admit.core.names import NAME_LENGTH_LIMIT, is_title
from venn_admit.errors import Code, InvalidInputError, NotFoundError
from venn_admit.store.access import audit, keys
from venn_admit.store.access.audit import Event, Origin
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import at_once, connect, transaction
from venn_admit.store.exemplars import classifiers

SECRET_BYTES = 32
MOST_DAYS = 3650
KEY_PREFIX = "va_"
# Prefix, number and secret: a form that programs that look for leaked secrets can be told.
_TEXT = re.compile(rf"{KEY_PREFIX}([1-9][0-9]{{0,17}})_([0-9a-f]{{64}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was made. text: what its user shows, which is given out here and never again."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose key, or token of an issuer, was shown, and what it may be used for.

    key_id: None for a token. classifier: None if it is for all. subject: of a token; None for a key.
    """

    key_id: int | None
    name: str
    scope: Scope
    classifier: str | None
    subject: str | None = None

    @property
    def identity(self) -> str:
        """What tells callers apart."""
        return f"key {self.key_id}" if self.subject is None else f"subject {self.subject}"


Asker: TypeAlias = Caller | Origin
"""Who asks: over HTTP, or by which other shell."""


class Refusal(StrEnum):
    """Why a key is not accepted."""

    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"


def create(
    engine: Engine,
    name: str,
    *,
    scope: str,
    classifier: str | None = None,
    days: int | None = None,
    by: Asker = Origin.COMMAND_LINE,
) -> NewKey:
    """Make a key.

    Args:
        name: What it is for.
        scope: `read`, `score`, `write` or `admin`; each includes those before it.
        classifier: The name of the one classifier that it is for, in all its generations; None: for all.
        days: After how many it expires; None: never.
        by: Who asks.

    Raises:
        InvalidInputError: A value is out of range, or a generation is named rather than a classifier.
    """
    if not is_title(name, NAME_LENGTH_LIMIT):
        expected = f"1 to {NAME_LENGTH_LIMIT} printable characters, without spaces around them"
        raise InvalidInputError(f"name: expected {expected}, got {name!a}")
    if scope not in list(Scope):
        raise InvalidInputError(f"scope: expected {', '.join(Scope)}, got {scope!a}")
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise InvalidInputError(f"expires: expected 1 to {MOST_DAYS} days, got {days}")
    secret = secrets.token_hex(SECRET_BYTES)
    with transaction(engine) as connection:
        found = None if classifier is None else classifiers.by_name(connection, classifier)
        if found is not None and not found.name == found.shared_name == classifier:
            raise InvalidInputError(
                f"classifier: expected the name of a classifier, got {classifier!r}; a key for "
                f"{found.shared_name!r} is for all its generations"
            )
        key_id = keys.add(
            connection,
            name=name,
            digest=digest_of(secret),
            scope=Scope(scope),
            classifier=found,
            lifetime=None if days is None else timedelta(days=days),
        )
        note(connection, "create_key", f"key {key_id}", by)
    return NewKey(key_id, f"{KEY_PREFIX}{key_id}_{secret}")


def list_keys(engine: Engine) -> Sequence[Row[Any]]:
    """Return all keys without their secrets, the newest first."""
    with connect(engine) as connection:
        return keys.every(connection)


def any_is_valid(engine: Engine) -> bool:
    """Return whether any key would be accepted now."""
    with connect(engine) as connection:
        return keys.any_is_valid(connection)


def revoke(engine: Engine, key_id: int, *, by: Asker = Origin.COMMAND_LINE) -> None:
    """Refuse a key from now on; revoking it again changes nothing. Raises NotFoundError."""
    with transaction(engine) as connection:
        if not keys.revoke(connection, key_id):
            raise NotFoundError(f"there is no key {key_id}", code=Code.UNKNOWN_KEY, key=key_id)
        note(connection, "revoke_key", f"key {key_id}", by)


def authenticate(engine: Engine, text: str) -> Caller | Refusal:
    """Return whose key this is, or why it is refused. That it expired or was revoked is told to its owner alone."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        return Refusal.UNKNOWN
    with at_once(engine) as connection:
        found = keys.find(connection, int(parts[1]))
    if found is None or not hmac.compare_digest(found.digest, digest_of(parts[2])):
        return Refusal.UNKNOWN
    if found.is_revoked:
        return Refusal.REVOKED
    if found.is_expired:
        return Refusal.EXPIRED
    if found.is_use_due:
        with transaction(engine) as connection:
            keys.note_use(connection, found.id)
    return Caller(found.id, found.name, found.scope, found.classifier)


def is_for(engine: Engine, caller: Caller, name: str) -> bool:
    """Return whether a caller may ask for a classifier, or for a generation of it; not if there is none."""
    if caller.classifier in (None, name):
        return True
    with connect(engine) as connection:
        try:
            return classifiers.by_name(connection, name).shared_name == caller.classifier
        except NotFoundError:
            return False


def digest_of(secret: str) -> bytes:
    """Return what is stored of a secret, 32 bytes."""
    # Slow hashes protect passwords, which can be guessed. Nobody guesses 256 random bits, so that a fast one will do.
    return hashlib.sha256(bytes.fromhex(secret)).digest()


def note(connection: Connection, action: str, target: str, by: Asker) -> None:
    """Tell the audit ledger what became of a key or a generation, in the same transaction."""
    audit.add(connection, Event(action=action, target=target, **asked_by(by)))


def asked_by(by: Asker) -> dict[str, Any]:
    """Return the columns of an event that say who asked."""
    if isinstance(by, Origin):
        return {"origin": by, "key_id": None, "subject": None}
    return {"origin": Origin.HTTP, "key_id": by.key_id, "subject": by.subject}


def record(engine: Engine, event: Event) -> None:
    """Add an event."""
    with transaction(engine) as connection:
        audit.add(connection, event)


def list_events(engine: Engine, *, limit: int, before: int | None = None) -> Sequence[Row[Any]]:
    """Return the newest events; before: only those older than this one."""
    with connect(engine) as connection:
        return audit.newest(connection, limit=limit, before=before)
