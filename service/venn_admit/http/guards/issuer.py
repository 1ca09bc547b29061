"""The issuer of tokens: where its public keys are, as OpenID Connect Discovery 1.0 has it, and fetching them."""

import ipaddress
import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

ANSWER_SECONDS = 5.0
MOST_BYTES = 1 << 20


class IssuerError(Exception):
    """The issuer cannot be reached, or its answer is invalid."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to keys of somebody else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_trustworthy(url: str) -> bool:
    """Whether nobody on the way can change what a URL answers: it is https, or on this machine.

    >>> [is_trustworthy(url) for url in ("https://a.example", "http://localhost:8080/a", "http://a.example", "a")]
    [True, True, False, False]
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host or "")))


def public_keys(issuer: str) -> list[dict[str, Any]]:
    """Return the keys of an issuer, as JSON Web Keys. Raises IssuerError."""
    found = _fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise IssuerError(f"{issuer}: expected its configuration to name it as the issuer, got another one")
    keys = _fetch(str(found.get("jwks_uri", ""))).get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise IssuerError(f"{issuer}: expected a list of keys, got something else")
    return keys


def _fetch(url: str) -> dict[str, Any]:
    if not is_trustworthy(url):
        raise IssuerError(f"{url}: expected https, or an address of this machine")
    try:
        opener = urllib.request.build_opener(_NoRedirects)
        with opener.open(url, timeout=ANSWER_SECONDS) as answer:
            body = answer.read(MOST_BYTES + 1)
        found = json.loads(body) if len(body) <= MOST_BYTES else None
    except (OSError, HTTPException, urllib.error.URLError, ValueError, RecursionError) as error:
        raise IssuerError(f"{url}: expected a JSON object, got: {error}") from error
    if not isinstance(found, dict):
        raise IssuerError(f"{url}: expected a JSON object of at most {MOST_BYTES:,} bytes, got something else")
    return found
