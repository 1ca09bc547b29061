"""Keys of the HTTP service, and sessions of its page. A secret is stored nowhere: only its digest is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier


class Scope(StrEnum):
    """What a key may be used for; each scope includes those before it."""

    READ = "read"
    SCORE = "score"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Whether a key of this scope may do what needs the other one.

        >>> [Scope.SCORE.includes(other) for other in Scope]
        [True, True, False, False]
        """
        return _ORDER[self] >= _ORDER[other]


_ORDER = {scope: place for place, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored. digest: 32 bytes. classifier: the name of the one that it is for; None if it is for all.

    is_use_due: whether its last use was not noted within the last minute.
    """

    id: int
    name: str
    digest: bytes
    scope: Scope
    classifier: str | None
    is_expired: bool
    is_revoked: bool
    is_use_due: bool


def add(
    connection: Connection,
    *,
    name: str,
    digest: bytes,
    scope: Scope,
    classifier: Classifier | None,
    lifetime: timedelta | None,
) -> int:
    """Store a key, and return its number. lifetime: after which it is refused; None if it does not expire."""
    return int(
        execute(
            connection,
            "keys.add_key",
            name=name,
            digest=digest,
            scope=scope,
            classifier_id=None if classifier is None else classifier.id,
            lifetime=lifetime,
        ).scalar_one()
    )


def find(connection: Connection, key_id: int) -> StoredKey | None:
    """Return the key of this number, or None."""
    row = execute(connection, "keys.key_by_id", key_id=key_id).one_or_none()
    if row is None:
        return None
    return StoredKey(**{**row._mapping, "digest": bytes(row.digest), "scope": Scope(row.scope)})


def every(connection: Connection) -> Sequence[Row[Any]]:
    """Return all keys, the newest first, without their digests."""
    return execute(connection, "keys.keys").all()


def any_is_valid(connection: Connection) -> bool:
    """Return whether any key would be accepted now."""
    found: int = execute(connection, "keys.valid_keys").scalar_one()
    return found > 0


def revoke(connection: Connection, key_id: int) -> bool:
    """Refuse a key from now on; return False if there is no such key."""
    return execute(connection, "keys.revoke_key", key_id=key_id).one_or_none() is not None


def move(connection: Connection, before: Classifier, after: Classifier) -> None:
    """Have the keys for a classifier go with its name, from one generation to another."""
    execute(connection, "keys.move_keys", before_id=before.id, after_id=after.id)


def note_use(connection: Connection, key_id: int) -> None:
    """Note that a key is used; this writes at most once a minute."""
    execute(connection, "keys.note_use", key_id=key_id)


def add_session(connection: Connection, *, digest: bytes, key_id: int, lifetime: timedelta, most: int) -> None:
    """Store a session of a key, and remove those that expired and the oldest of the key beyond `most`.

    digest: 32 bytes.
    """
    execute(connection, "sessions.lock_key", key_id=key_id)
    execute(connection, "sessions.remove_expired_sessions")
    execute(connection, "sessions.remove_oldest_sessions", key_id=key_id, kept=most - 1)
    execute(connection, "sessions.add_session", digest=digest, key_id=key_id, lifetime=lifetime)


def key_of_session(connection: Connection, digest: bytes) -> Row[Any] | None:
    """Return id, name, scope and classifier of the key whose session this is; None if it is not accepted."""
    return execute(connection, "sessions.session_key", digest=digest).one_or_none()


def remove_session(connection: Connection, digest: bytes) -> None:
    """End a session; ending it again changes nothing."""
    execute(connection, "sessions.remove_session", digest=digest)
