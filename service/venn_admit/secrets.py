"""Keeping passwords out of messages and logs: the one place that knows in which forms an address holds them.

An address is a URL of a database or of a broker, or a libpq keyword string. Text that comes from elsewhere, such as
a driver's error, is masked twice: what the address in use holds is replaced wherever it occurs, and what looks like a
password in an address is replaced whatever the address.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote, unquote_plus

MASK = "***"

# A shorter secret is part of too many words to be replaced inside of them.
_LEAST_LENGTH_INSIDE_WORDS = 4

_NAME = r"[\w.-]*(?:password|passwd|passphrase|pwd|secret|token)[\w.-]*"
_VALUE = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&;,)'"]+)"""
# `password=...` of a query or a keyword string, or `'password': '...'` of a dictionary that was printed.
_ASSIGNMENT = re.compile(rf"""(?i)({_NAME}(?:\s*=\s*|["']\s*:\s*))({_VALUE})""")
_USERINFO = re.compile(r"(\w[\w+.-]*://[^\s:/@]*:)[^\s]*@")


def mask(text: str, *addresses: str | None) -> str:
    """Return the text without the passwords of these addresses, and without any that look like one of an address.

    >>> mask("cannot connect to redis://:hunter2@host/0?ssl_password=hunter3")
    'cannot connect to redis://:***@host/0?ssl_password=***'
    >>> mask("no such option: hunter2", "postgresql://host/name?password=hunter2")
    'no such option: ***'
    """
    secrets = {secret for address in addresses if address for secret in secrets_of(address) if secret in text}
    for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
        if len(secret) >= _LEAST_LENGTH_INSIDE_WORDS:
            text = text.replace(secret, MASK)
        else:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", MASK, text)
    # Each line of a log is masked, and most texts hold neither an address nor an assignment.
    if "://" in text:
        text = _USERINFO.sub(rf"\1{MASK}@", text)
    if "=" in text or "'" in text or '"' in text:
        text = _ASSIGNMENT.sub(rf"\1{MASK}", text)
    return text


def shown_address(address: str) -> str:
    """Return scheme, user, host, port and path of a URL: its query is left out, since any option may be a secret.

    >>> shown_address("amqp://bob:hunter2@host:5672//?password=hunter3")
    'amqp://bob:***@host:5672//'
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return MASK
    userinfo, user, place = _split(rest)
    colon = f":{MASK}" if ":" in userinfo else ""
    # The place may be followed by another address of a list, with a password of its own.
    return mask(f"{scheme}://{user}{colon}{'@' if userinfo else ''}{place}", address)


def address_of(secret: str) -> str:
    """Return an address that holds a secret, as `mask` takes one.

    >>> mask("no user has hunter2", address_of("hunter2"))
    'no user has ***'
    """
    return f"secret://:{quote(secret, safe='')}@"


@lru_cache(maxsize=16)  # every line of a log is masked
def secrets_of(address: str) -> frozenset[str]:
    """Return the passwords that an address holds, in each form in which a message may repeat them.

    A password that is also the name of the user, the host or the database is none: a message needs these.
    """
    plain = {form for raw in _raw_secrets(address) for form in (raw, unquote(raw), unquote_plus(raw))}
    plain -= _names(address) | {""}
    return frozenset(plain.union(*map(_escaped_forms, plain)))


def _raw_secrets(address: str) -> Iterator[str]:
    # The second, because the name of a database may be an address in its turn.
    for text in (address, unquote(address)):
        yield from _passwords(text)


def _passwords(address: str) -> Iterator[str]:
    for start in re.finditer("://", address):
        password = _split(address[start.end() :])[0].partition(":")[2]
        yield password
        # A parser that cuts it at a sign that should have been encoded may complain of what is left.
        yield from (part for part in re.split(r"[/?#@:;\s]", password) if len(part) >= _LEAST_LENGTH_INSIDE_WORDS)
    yield from (value for name, value in _options(address) if re.fullmatch(_NAME, name, re.IGNORECASE))
    for assignment in _ASSIGNMENT.finditer(address):  # of a keyword string
        value = assignment.group(2)
        yield from (value, re.sub(r"\\(.)", r"\1", value[1:-1] if value[0] in "'\"" else value))


def _split(rest: str) -> tuple[str, str, str]:
    """What follows `://` as user and password, the user alone, and host, port and path: any may hold a stray @ or ?."""
    before_query, _, query = rest.rpartition("?")
    if "=" not in query or "@" not in before_query:
        before_query = rest
    userinfo, at, _ = before_query.rpartition("@")
    return userinfo, userinfo.partition(":")[0], rest[len(userinfo) + len(at) :].partition("?")[0]


def _options(address: str) -> Iterator[tuple[str, str]]:
    for pair in re.split("[&;?]", address.partition("?")[2]):
        name, _, value = pair.partition("=")
        yield unquote_plus(name), value


def _names(address: str) -> set[str]:
    """What an address holds that is shown."""
    _, user, place = _split(address.partition("://")[2])
    names = {user, *re.split("[/:,]", place)}
    names.update(value for name, value in _options(address) if name in {"user", "host", "port", "dbname"})
    return {form for name in names for form in (name, unquote(name))}


def _escaped_forms(secret: str) -> set[str]:
    in_keywords = secret.replace("\\", "\\\\").replace("'", "\\'")
    return {repr(secret)[1:-1], in_keywords, quote(secret), quote(secret, safe=""), quote_plus(secret)}
