"""Passwords: no message shows one, however the address holds it and wherever a failure comes from."""

import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.program import Program
from venn_admit import broker
from venn_admit.errors import VennAdmitError
from venn_admit.secrets import mask, secrets_of, shown_address
from venn_admit.store.database.engine import connect, create_engine

# No message holds these letters by chance, and none may hold the start of a password either.
MARK = "zqzq"
passwords = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=12).map(
    lambda rest: MARK + rest
)
nasty_passwords = st.text("ab1@:/?#&=;%+' \"\\", max_size=12).map(lambda rest: MARK + rest)


def as_keyword(password: str) -> str:
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"host=127.0.0.1 port=1 user=bob password='{escaped}'"


DATABASE_FORMS: dict[str, Callable[[str], str]] = {
    "encoded": lambda password: f"postgresql://bob:{quote(password, safe='')}@127.0.0.1:1/name",
    "as it is": lambda password: f"postgresql://bob:{password}@127.0.0.1:1/name",
    "option": lambda password: f"postgres://127.0.0.1:1/name?user=bob&password={quote_plus(password)}",
    "option as it is": lambda password: f"postgres://127.0.0.1:1/name?user=bob&password={password}",
    "key of TLS": lambda password: f"postgresql://bob@127.0.0.1:1/name?sslpassword={quote(password)}&sslmode=require",
    "two options": lambda password: f"postgresql://127.0.0.1:1/name?password={quote(password)}&password=x",
    "misspelt option": lambda password: f"postgresql://127.0.0.1:1/name?pasword={quote(password)}",
    "no number": lambda password: f"postgresql://127.0.0.1:{quote(password, safe='')}/name",
    "name that is an address": lambda password: (
        f"postgresql://127.0.0.1:1/{quote(f'postgresql://bob:{quote(password)}@host/name', safe='')}"
    ),
    "keywords": as_keyword,
    "name that is keywords": lambda password: f"postgresql://127.0.0.1:1/?dbname={quote(as_keyword(password))}",
}


@pytest.mark.parametrize("form", DATABASE_FORMS)
@settings(max_examples=20, deadline=None)
@given(password=passwords | nasty_passwords)
@example(password=f"{MARK}@x/y")
@example(password=f"{MARK} '\\x")
def test_a_database_that_cannot_be_reached_is_told_without_its_password(form: str, password: str) -> None:
    url = DATABASE_FORMS[form](password)
    with pytest.raises(VennAdmitError) as caught, connect(create_engine(url)):
        pass
    assert MARK not in str(caught.value)
    assert MARK not in mask("".join(traceback.format_exception(caught.value)), url)


@pytest.mark.parametrize("form", DATABASE_FORMS)
def test_the_program_shows_no_password_with_a_traceback_either(form: str) -> None:
    program = Program({"VENN_ADMIT_DATABASE_URL": DATABASE_FORMS[form](f"{MARK}+/ab")})
    outcome = program("--debug", "db", "status")
    assert outcome.code in {2, 5}, outcome
    assert MARK not in outcome.stderr


# Each fails before anything is sent, with passwords that do not turn it into another address.
BROKER_FORMS: dict[str, Callable[[str], str]] = {
    "option": lambda password: f"redis://127.0.0.1:1/0?password={quote_plus(password)}",
    "unknown option": lambda password: f"redis://127.0.0.1:1/0?secret={quote_plus(password)}",
    "twice": lambda password: f"amqp://bob:{quote(password, safe='')}@127.0.0.1:1//?password={quote(password)}",
    "unknown scheme": lambda password: f"rabbit://bob:{quote(password, safe='')}@127.0.0.1:1//",
    "cut at a slash": lambda password: f"redis://:{password}/x@127.0.0.1:1/0",
    "cut at a question mark": lambda password: f"amqp://bob:{password}?x@127.0.0.1:1//",
}


@pytest.mark.parametrize("form", BROKER_FORMS)
@settings(max_examples=20, deadline=None)
@given(password=st.text("ab1+%'$", max_size=12).map(lambda rest: MARK + rest))
def test_a_broker_that_cannot_be_used_is_told_without_its_password(form: str, password: str) -> None:
    url = BROKER_FORMS[form](password)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whatever kind the library's parser raises
        broker.prepare(broker.make_app(url, queue="none", task_seconds=1))
    assert MARK not in mask("".join(traceback.format_exception(caught.value)), url)


@settings(max_examples=30, deadline=None)
@given(password=passwords | nasty_passwords)
def test_text_that_repeats_an_address_loses_the_password(password: str) -> None:
    for form in (*DATABASE_FORMS.values(), *BROKER_FORMS.values()):
        address = form(password)
        if any(sign in address for sign in ("pasword", f"1:{MARK}")):
            continue  # nothing says that this is a password
        for text in (address, repr(address), f"could not parse {address!r}: invalid", f"{password} is wrong"):
            assert MARK not in mask(text, address)
        assert MARK not in shown_address(address)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("redis://:one@host/0, amqp://bob:two@host//", "redis://:***@host/0, amqp://bob:***@host//"),
        ("connection to postgresql://bob:one@host/name failed", "connection to postgresql://bob:***@host/name failed"),
        ("user=bob password=one host=h", "user=bob password=*** host=h"),
        ("password = 'one \\' two' sslpassword=three", "password = *** sslpassword=***"),
        ("{'user': 'bob', 'password': 'one'}", "{'user': 'bob', 'password': ***}"),
        ("password authentication failed for user bob", "password authentication failed for user bob"),
        ("passfile=/home/bob/.pgpass", "passfile=/home/bob/.pgpass"),
        ("http://host/path", "http://host/path"),
    ],
)
def test_what_looks_like_a_password_is_masked_without_an_address(text: str, masked: str) -> None:
    assert mask(text) == masked


def test_a_password_that_is_the_name_of_the_user_stays_readable_as_that() -> None:
    address = "postgresql://postgres:postgres@host/postgres"
    assert secrets_of(address) == frozenset()
    assert mask('role "postgres" does not exist', address) == 'role "postgres" does not exist'
    assert shown_address(address) == "postgresql://postgres:***@host/postgres"


def test_a_short_password_is_replaced_as_a_word_only() -> None:
    assert mask("a cat said: a", "redis://:a@host/0") == "*** cat said: ***"
