"""An issuer of tokens on this machine, with keys of its own."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm

AUDIENCE = "venn-admit"


def new_key() -> RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public(key: RSAPrivateKey, name: str, **more: Any) -> dict[str, Any]:
    """Return the public part as a JSON Web Key."""
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig", **more}


@dataclass
class Issuer:
    """What it answers, and how often it was asked for its keys."""

    url: str
    key: RSAPrivateKey
    keys: list[dict[str, Any]]
    configuration: dict[str, Any] = field(default_factory=dict)
    fetches: int = 0
    status: int = 200

    def token(self, *, key: Any = None, kid: str | None = "one", algorithm: str = "RS256", **claims: Any) -> str:
        """Return a token that is valid, except for what is given; a claim of None is left out."""
        whole = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "exp": int(time.time()) + 600,
            "scope": "openid venn-admit:read",
            **claims,
        }
        given = {name: value for name, value in whole.items() if value is not None}
        headers = None if kid is None else {"kid": kid}
        return jwt.encode(given, self.key if key is None else key, algorithm=algorithm, headers=headers)


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Serve an issuer on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/keys":
                issuer.fetches += 1
            body = json.dumps({"keys": issuer.keys} if self.path == "/keys" else issuer.configuration).encode()
            self.send_response(issuer.status)
            if issuer.status == 302:
                self.send_header("Location", f"{issuer.url}/keys")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class names it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        key = new_key()
        issuer = Issuer(url, key, [public(key, "one")], {"issuer": url, "jwks_uri": f"{url}/keys"})
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
