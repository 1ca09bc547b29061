"""Bearer tokens of an OpenID Connect issuer, which runs on this machine with keys made here."""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from fastapi.testclient import TestClient
from httpx2 import Response
from structlog.testing import capture_logs

from tests.api.issuer import AUDIENCE, Issuer, new_key, public, running_issuer
from tests.api.service import OWN, Service, check_problem
from tests.cli.samples import NAME
from venn_admit.api.application import create_application
from venn_admit.errors import InvalidInputError
from venn_admit.http.guards import ledger
from venn_admit.http.guards.issuer import IssuerError, public_keys
from venn_admit.http.guards.token_settings import accepted_tokens
from venn_admit.http.guards.tokens import Tokens
from venn_admit.runtime.settings import Settings
from venn_admit.store.access.keys import Scope

CLASSIFIERS = "/v1/classifiers"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        yield running


def accepting(service: Service, issuer: Issuer, **settings: Any) -> TestClient:
    """The application with tokens of the issuer accepted."""
    changed = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, **settings}
    runtime = replace(service.runtime, settings=replace(service.runtime.settings, **changed))
    return TestClient(create_application(runtime), raise_server_exceptions=False)


def ask(client: TestClient, token: str, path: str = OWN, **options: Any) -> Response:
    return client.request(options.pop("method", "GET"), path, headers={"Authorization": f"Bearer {token}"}, **options)


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def test_a_token_opens_what_its_scopes_include(shared: Service, issuer: Issuer) -> None:
    client = accepting(shared, issuer)
    assert ask(client, issuer.token()).status_code == 200
    check_problem(ask(client, issuer.token(), f"{OWN}/labels", method="POST"), 403, "forbidden", "scope write")
    for scope in ("venn-admit:read venn-admit:admin", "venn-admit:admin", ["venn-admit:admin"]):
        assert ask(client, issuer.token(scope=scope), "/v1/audit").status_code == 200
    for none in (None, "", "read", "venn-admit:other", 7, {"venn-admit:admin": 1}):
        check_problem(ask(client, issuer.token(scope=none)), 403, "forbidden", "venn-admit:read")
    assert client.get(OWN, headers={"Authorization": f"Bearer {shared.keys[Scope.READ]}"}).status_code == 200
    assert issuer.fetches == 1, "its keys are kept"


def test_what_a_token_did_is_in_the_ledger_under_its_subject(empty: Service, issuer: Issuer) -> None:
    client = accepting(empty, issuer)
    token = issuer.token(scope="venn-admit:admin", sub="ada@example.org")
    body = {"classifier": "made", "classes": ["a", "b"], "dimension": 3, "seed": 0}
    assert ask(client, token, CLASSIFIERS, method="POST", json=body).status_code == 201
    event = ask(client, token, "/v1/audit").json()["events"][0]
    assert (event["subject"], event["key"], event["action"]) == ("ada@example.org", None, "create_classifier")
    assert token not in str(event)


def test_tokens_without_a_scope_fill_the_ledger_within_bounds(
    empty: Service, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "REFUSALS_PER_MINUTE", 2)
    client = accepting(empty, issuer)
    token, admin = issuer.token(scope=None), issuer.token(scope="venn-admit:admin")
    before = len(ask(client, admin, "/v1/audit").json()["events"])
    assert [ask(client, token, CLASSIFIERS, method="POST").status_code for _ in range(4)] == [403] * 4
    assert len(ask(client, admin, "/v1/audit").json()["events"]) == before + 2


@pytest.mark.parametrize(
    ("wrong", "saying"),
    [
        ({"exp": 0}, "expired"),
        ({"exp": None}, "valid token"),
        ({"nbf": 2**33}, "valid token"),
        ({"aud": "another"}, "valid token"),
        ({"aud": None}, "valid token"),
        ({"iss": "https://another.example"}, "valid token"),
        ({"iss": None}, "valid token"),
        ({"sub": None}, "valid token"),
        ({"sub": ""}, "subject"),
        ({"sub": "x" * 256}, "subject"),
        ({"sub": "a\x00b"}, "subject"),
        ({"kid": "two"}, "valid token"),
        ({"kid": None}, "valid token"),
    ],
)
def test_a_token_must_be_right_in_every_claim(
    shared: Service, issuer: Issuer, wrong: dict[str, Any], saying: str
) -> None:
    client, token = accepting(shared, issuer), issuer.token(**wrong)
    with capture_logs() as entries:
        answer = ask(client, token)
    check_problem(answer, 401, "unauthenticated", saying)
    assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert token not in answer.text
    assert token not in str(entries)


def test_clocks_may_differ_by_a_minute(shared: Service, issuer: Issuer) -> None:
    client, now = accepting(shared, issuer), int(time.time())
    assert ask(client, issuer.token(exp=now - 30, nbf=now + 30)).status_code == 200
    assert ask(client, issuer.token(exp=now - 90)).status_code == 401
    assert ask(client, issuer.token(nbf=now + 90)).status_code == 401


def test_a_forged_token_is_refused(shared: Service, issuer: Issuer) -> None:
    """Signed by another key, by none, by the public key as if it were a shared secret, or changed afterwards."""
    client, good = accepting(shared, issuer), issuer.token()
    head, body, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    changed = base64url(json.dumps({**claims, "scope": "venn-admit:admin"}).encode())
    pem = issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    shared_head = base64url(b'{"alg":"HS256","kid":"one","typ":"JWT"}')
    by_public_key = base64url(hmac.digest(pem, f"{shared_head}.{body}".encode(), "sha256"))
    none = base64url(b'{"alg":"none","kid":"one"}')
    forged = {
        "another key": issuer.token(key=new_key()),
        "shared secret": f"{shared_head}.{body}.{by_public_key}",
        "changed": f"{head}.{changed}.{signature}",
        "no algorithm": f"{none}.{body}.",
        "no signature": f"{head}.{body}.",
        "no token": "a.b.c",
        "deep": f"{base64url(b'[' * 100_000)}.e30.x",
    }
    assert ask(client, good).status_code == 200
    for why, token in forged.items():
        assert ask(client, token).status_code == 401, why


def test_keys_that_are_not_for_signatures_are_not_used(shared: Service, issuer: Issuer) -> None:
    secret = base64url(b"s" * 32)
    issuer.keys = [
        {"kty": "oct", "k": secret, "kid": "shared", "alg": "HS256", "use": "sig"},
        public(issuer.key, "encrypting", use="enc"),
        public(issuer.key, "symmetric", alg="HS256"),
        {"kty": "RSA", "kid": "broken", "n": "!", "e": 7},
        {"kty": "RSA"},
        public(issuer.key, "one"),
    ]
    client = accepting(shared, issuer)
    assert ask(client, issuer.token()).status_code == 200
    assert ask(client, issuer.token(key=b"s" * 32, kid="shared", algorithm="HS256")).status_code == 401
    for name in ("encrypting", "symmetric", "broken"):
        assert ask(client, issuer.token(kid=name)).status_code == 401


def test_new_keys_are_fetched_once_a_minute_and_withdrawn_ones_forgotten(issuer: Issuer) -> None:
    now = [0.0]
    tokens = Tokens(issuer.url, AUDIENCE, scope_claim="scope", classifier_claim=None, clock=lambda: now[0])
    assert tokens.caller(issuer.token()).subject == "ada"
    for _ in range(3):
        with pytest.raises(Exception, match="valid token"):
            tokens.caller(issuer.token(kid="two"))
    assert issuer.fetches == 1
    second = new_key()
    issuer.keys = [public(second, "two")]
    now[0] = 61.0
    assert tokens.caller(issuer.token(key=second, kid="two")).subject == "ada"
    assert issuer.fetches == 2
    with pytest.raises(Exception, match="valid token"):
        tokens.caller(issuer.token())
    issuer.status = 500
    now[0] = 2000.0
    assert tokens.caller(issuer.token(key=second, kid="two")).subject == "ada", "its keys are kept for an hour"
    now[0] = 4000.0
    with pytest.raises(Exception, match="cannot be reached"):
        tokens.caller(issuer.token(key=second, kid="two"))


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_issuer_that_cannot_be_reached_is_no_fault_of_the_caller(
    shared: Service, issuer: Issuer, status: int
) -> None:
    client, issuer.status = accepting(shared, issuer), status
    for _ in range(2):
        answer = ask(client, issuer.token())
        check_problem(answer, 503, "issuer-unreachable", "or show a key")
        assert answer.headers["retry-after"] == "60"
    assert issuer.fetches == 0
    assert client.get(OWN, headers={"Authorization": f"Bearer {shared.keys[Scope.READ]}"}).status_code == 200


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"issuer": "https://another.example"},
        {"jwks_uri": "http://keys.example/"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
def test_the_configuration_of_an_issuer_is_checked(issuer: Issuer, configuration: dict[str, Any]) -> None:
    issuer.configuration = {"issuer": issuer.url, **configuration}
    with pytest.raises(IssuerError, match="expected"):
        public_keys(issuer.url)


def test_a_token_may_be_for_one_classifier(shared: Service, issuer: Issuer) -> None:
    client = accepting(shared, issuer, oidc_classifier_claim="classifier", oidc_scope_claim="roles")
    roles = ["venn-admit:read"]
    assert ask(client, issuer.token(roles=roles, classifier=NAME)).status_code == 200
    check_problem(ask(client, issuer.token(roles=roles, classifier="x")), 403, "forbidden", "classifier 'x' alone")
    check_problem(ask(client, issuer.token(roles=roles, classifier=NAME), "/metrics"), 403, "forbidden")
    assert ask(client, issuer.token(roles=roles, classifier="*"), "/metrics").status_code == 200
    for wrong in (None, "", 7, [NAME]):
        check_problem(ask(client, issuer.token(roles=roles, classifier=wrong)), 403, "forbidden", "claim classifier")


def test_settings_must_be_complete(shared: Service) -> None:
    home = shared.runtime.settings.home
    assert accepted_tokens(Settings(home=home)) is None
    for issuer in ("http://issuer.example", "issuer.example", "ftp://localhost", "https://", "https://[a"):
        with pytest.raises(InvalidInputError, match="VENN_ADMIT_OIDC_ISSUER: expected https"):
            accepted_tokens(Settings(home=home, oidc_issuer=issuer, oidc_audience=AUDIENCE))
    with pytest.raises(InvalidInputError, match="VENN_ADMIT_OIDC_AUDIENCE: expected"):
        accepted_tokens(Settings(home=home, oidc_issuer="https://issuer.example"))
