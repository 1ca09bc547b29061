"""Bearer tokens of an OpenID Connect issuer, in the place of keys, for installations that manage their users there.

A token is accepted if the issuer signed it, by an asymmetric algorithm, for our audience, and it is valid now. Its
scopes are `venn-admit:read`, `venn-admit:score`, `venn-admit:write` and `venn-admit:admin`.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import jwt
import structlog

from venn_admit.flows.keys.keys import Caller
from venn_admit.http.guards.issuer import IssuerError, public_keys
from venn_admit.http.problems import Refused, forbidden, unauthenticated
from venn_admit.store.access.keys import Scope
from venn_admit_client.codes import Problem

# Not those of shared secrets: with one, verifying a token would be enough to make one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
SCOPE_PREFIX = "venn-admit:"
EVERY_CLASSIFIER = "*"
LEEWAY_SECONDS = 60
LEAST_SECONDS_BETWEEN_FETCHES = 60.0
MOST_SECONDS_WITHOUT_FETCH = 3600.0
_LONGEST_SUBJECT = 255

log = structlog.get_logger()


class Tokens:
    """Verifies the tokens of one issuer; its keys are fetched when they are needed, and kept for an hour."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        *,
        scope_claim: str,
        classifier_claim: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._scope_claim = scope_claim
        self._classifier_claim = classifier_claim
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._tried_at: float | None = None
        self._fetched_at: float | None = None

    def caller(self, text: str) -> Caller:
        """Return whose token this is. Raises Refused."""
        try:
            claims = jwt.decode(
                text,
                self._key_of(text),
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.ExpiredSignatureError:
            raise unauthenticated("the token has expired; get another from the issuer") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            # Without what was wrong, which would help a forger; without the chain, which quotes it.
            raise unauthenticated("expected a valid token of the issuer, for this audience, got another") from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not 1 <= len(subject) <= _LONGEST_SUBJECT or not subject.isprintable():
            raise unauthenticated(f"expected a token whose subject is 1 to {_LONGEST_SUBJECT} printable characters")
        return Caller(None, subject, self._scope(claims), self._classifier(claims), subject)

    def _scope(self, claims: dict[str, Any]) -> Scope:
        given = claims.get(self._scope_claim)
        names = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        allowed = [scope for scope in Scope if f"{SCOPE_PREFIX}{scope}" in names]
        if not allowed:
            raise forbidden(f"expected a token with a scope such as {SCOPE_PREFIX}read, got one with none of them")
        return allowed[-1]

    def _classifier(self, claims: dict[str, Any]) -> str | None:
        if self._classifier_claim is None:
            return None
        given = claims.get(self._classifier_claim)
        if not isinstance(given, str) or not given:
            raise forbidden(f"expected a token whose claim {self._classifier_claim} names a classifier, got none")
        return None if given == EVERY_CLASSIFIER else given

    def _key_of(self, text: str) -> jwt.PyJWK:
        name = jwt.get_unverified_header(text).get("kid")
        if not isinstance(name, str):
            raise jwt.InvalidTokenError("the header names no key")
        with self._lock:
            age = None if self._fetched_at is None else self._clock() - self._fetched_at
            if name not in self._keys or age is None or age > MOST_SECONDS_WITHOUT_FETCH:
                self._fetch()
            if name not in self._keys:
                raise jwt.InvalidTokenError("the issuer has no such key")
            return self._keys[name]

    def _fetch(self) -> None:
        now = self._clock()
        if self._tried_at is not None and now - self._tried_at < LEAST_SECONDS_BETWEEN_FETCHES:
            if self._fetched_at is None:
                raise _unreachable()
            return
        self._tried_at = now
        try:
            found = public_keys(self._issuer)
        except IssuerError as error:
            log.warning("issuer not reached", reason=str(error))
            # Keys that it may have withdrawn are used no longer.
            if self._fetched_at is None or now - self._fetched_at > MOST_SECONDS_WITHOUT_FETCH:
                self._keys, self._fetched_at = {}, None
                raise _unreachable() from None
            return
        self._keys, self._fetched_at = dict(filter(None, map(_usable, found))), now


def _usable(found: dict[str, Any]) -> tuple[str, jwt.PyJWK] | None:
    """Return a key and its name; None if tokens must not be signed by it."""
    name, algorithm = found.get("kid"), found.get("alg")
    if (
        not isinstance(name, str)
        or found.get("kty") not in KEY_TYPES
        or found.get("use", "sig") != "sig"
        or (algorithm is not None and algorithm not in ALGORITHMS)
    ):
        return None
    try:
        return name, jwt.PyJWK(found)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _unreachable() -> Refused:
    return Refused(
        503,
        Problem.ISSUER_UNREACHABLE,
        "the issuer of tokens cannot be reached, so that none can be verified; try again, or show a key",
        headers={"Retry-After": "60"},
    )
