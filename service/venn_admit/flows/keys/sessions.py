"""Sessions of the page: a key begins one, and it ends when it is signed out, when it expires, or with its key."""

import hashlib
import hmac
import re
import secrets
from datetime import timedelta

from sqlalchemy import Engine

from venn_admit.flows.keys.keys import Caller, Refusal, authenticate, digest_of
from venn_admit.store.access import keys
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import connect, transaction

LIFETIME = timedelta(hours=12)
MOST_SESSIONS = 100
"""Sessions of a key at a time, in all processes together: people may share it, on several machines each."""

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[0-9a-f]{64}", re.ASCII)


def begin(engine: Engine, key: str) -> str | Refusal:
    """Return what the browser shows from now on, or why the key is refused; beyond `MOST_SESSIONS`, the oldest end."""
    found = authenticate(engine, key)
    if isinstance(found, Refusal):
        return found
    assert found.key_id is not None, "a key, unlike a token of an issuer, has a number"
    token = secrets.token_hex(_TOKEN_BYTES)
    with transaction(engine) as connection:
        keys.add_session(
            connection, digest=digest_of(token), key_id=found.key_id, lifetime=LIFETIME, most=MOST_SESSIONS
        )
    return token


def caller_of(engine: Engine, token: str) -> Caller | None:
    """Return whose session this is; None if there is none, or none any more."""
    if not _TOKEN.fullmatch(token):
        return None
    with connect(engine) as connection:
        found = keys.key_of_session(connection, digest_of(token))
    return None if found is None else Caller(found.id, found.name, Scope(found.scope), found.classifier)


def end(engine: Engine, token: str) -> None:
    """End a session; ending it again changes nothing."""
    if _TOKEN.fullmatch(token):
        with transaction(engine) as connection:
            keys.remove_session(connection, digest_of(token))


def form_token(token: str) -> str:
    """Return what the forms of a session carry: other sites cannot know it, and it does not give the session away."""
    return hmac.new(bytes.fromhex(token), b"form", hashlib.sha256).hexdigest()
