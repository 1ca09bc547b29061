"""Requests to the service: with the key, sent again while they may still succeed, and errors as exceptions."""

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import quote
from uuid import uuid4

import httpx2 as httpx

from .bodies import JSON
from .errors import InvalidInputError, UnavailableError, VennAdmitError, family_of
from .given import encoded_members
from .retries import STILL_RUNNING, Retries, is_temporary

# An attempt is given at least so long, even if the time is nearly over.
_LEAST_SECONDS = 0.1
_BLOCK_BYTES = 1 << 20


class Transport:
    """The connection to a service. Several threads may use it."""

    def __init__(self, url: str, key: str, *, timeout: float, retries: Retries) -> None:
        """Prepare for requests; none is sent yet.

        Raises:
            InvalidInputError: The URL or the key cannot be one.
        """
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise InvalidInputError(f"url: expected http://host:port or https://host, got {url!r}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidInputError(f"url: expected http://host:port or https://host, got {url!r}")
        # As an environment without a key gives it, a key may be None.
        given: object = key
        if not (isinstance(given, str) and given.isascii() and given.isprintable() and given.strip()):
            raise InvalidInputError("key: expected the text that `venn-admit key create` shows, got something else")
        if not 0 < timeout < float("inf"):
            raise InvalidInputError(f"timeout: expected a positive number of seconds, got {timeout}")
        self.url = str(parsed).rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key.strip()}", "Accept": "application/json, application/problem+json"}
        )

    def close(self) -> None:
        """Close the connections to the service."""
        self._client.close()

    def get(self, *path: str | int, **query: Any) -> dict[str, Any]:
        """Return what is at a path, given in segments; parts of the query that are None are left out."""
        return self._send("GET", path, query=_given(query))

    def pages(self, *path: str | int, **query: Any) -> Iterator[dict[str, Any]]:
        """Return all of a list, which has the name that its path ends in; pages are asked for as they are needed."""
        cursor: str | None = None
        while True:
            page = self.get(*path, cursor=cursor, **query)
            yield from page[str(path[-1])]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def post(self, *path: str | int, body: Mapping[str, Any] | bytes | None = None) -> dict[str, Any]:
        """Send JSON to a path until it is answered, to be executed once; return the answer.

        Raises:
            InvalidInputError: JSON cannot hold a member of the body.
        """
        content = body if isinstance(body, bytes | None) else _json(body)
        return self._send("POST", path, content=content)

    def put(self, *path: str | int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Put JSON at a path until that is answered, to be executed once; return the answer.

        Raises:
            InvalidInputError: JSON cannot hold a member of the body.
        """
        return self._send("PUT", path, content=_json(body))

    def delete(self, *path: str | int, **query: Any) -> dict[str, Any]:
        """Delete what is at a path, sending that until it is answered; return the answer."""
        return self._send("DELETE", path, query=_given(query))

    def upload(self, *path: str | int, file: IO[bytes], kind: str, **query: Any) -> dict[str, Any]:
        """Send a file of a media type to a path until it is answered, to be stored once; return the answer."""
        return self._send("POST", path, query=_given(query), content=file, kind=kind)

    def download(self, *path: str | int, kind: str, into: IO[bytes]) -> None:
        """Write what is at a path, as a media type, into a file."""
        self._send("GET", path, kind=kind, into=into)

    def _send(
        self,
        method: str,
        path: tuple[str | int, ...],
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | IO[bytes] | None = None,
        kind: str = JSON,
        into: IO[bytes] | None = None,
    ) -> dict[str, Any]:
        url = "/".join([self.url, "v1", *(quote(str(segment), safe="") for segment in path)])
        headers = {}
        if method != "GET":
            headers["Idempotency-Key"] = str(uuid4())  # the same for each attempt
            if content is not None:
                headers["Content-Type"] = kind
        if into is not None:
            headers["Accept"] = f"{kind}, application/problem+json"
        ends = time.monotonic() + self._retries.total_seconds
        for failures in itertools.count(1):
            wait = self._retries.wait(failures)
            left = min(self._timeout, max(ends - time.monotonic(), _LEAST_SECONDS))
            timeout = self._timeout if failures == 1 else left
            try:
                answer = self._attempt(method, url, query, content, headers, timeout, into)
            except httpx.TransportError as failure:
                error: VennAdmitError = UnavailableError(
                    f"the service at {self.url} did not answer in {failures} attempts; the last one failed with "
                    f"{type(failure).__name__}: {failure}"
                )
                error.__cause__ = failure
            else:
                if answer.is_success:
                    return {} if into is not None else _content(answer)
                error = _temporary(answer)
                if error.code == STILL_RUNNING:  # a calibration may take an hour
                    ends = time.monotonic() + self._retries.total_seconds
                wait = max(wait, _retry_after(answer))
            if time.monotonic() + wait >= ends:
                raise error
            time.sleep(wait)
        raise AssertionError("the count has no end")

    def _attempt(
        self,
        method: str,
        url: str,
        query: Mapping[str, Any] | None,
        content: bytes | IO[bytes] | None,
        headers: Mapping[str, str],
        timeout: float,
        into: IO[bytes] | None,
    ) -> httpx.Response:
        """Return the answer to one attempt, which was read; into: where it goes if it is a success."""
        if content is not None and not isinstance(content, bytes):
            content.seek(0)
        asked = self._client.stream(method, url, params=query, content=content, headers=headers, timeout=timeout)
        with asked as answer:
            if into is None or not answer.is_success:
                answer.read()
                return answer
            into.seek(0)
            into.truncate()
            for block in answer.iter_bytes(_BLOCK_BYTES):
                into.write(block)
            into.flush()
        return answer


def _temporary(answer: httpx.Response) -> VennAdmitError:
    """Return the error of an answer after which the request is sent again. Raises that of any other."""
    error = _error(answer)
    if not is_temporary(answer.status_code, error.code):
        raise error
    return error


def _json(body: Mapping[str, Any]) -> bytes:
    return b"{" + encoded_members(body, InvalidInputError) + b"}"


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _object(answer: httpx.Response) -> dict[str, Any] | None:
    """Return the object of JSON, which is in UTF-8, that an answer holds; None if it holds something else."""
    try:
        found = json.loads(answer.content.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _content(answer: httpx.Response) -> dict[str, Any]:
    content = _object(answer)
    if content is None:
        raise VennAdmitError(
            f"expected JSON of the venn-admit service, got something else from {answer.request.url.host}; is the URL "
            "that of the service?",
            status=answer.status_code,
        )
    return content


def _error(answer: httpx.Response) -> VennAdmitError:
    """Return the error that an answer is; one of a proxy has no code."""
    problem = _object(answer) or {}
    code = problem.get("code")
    detail = problem.get("detail") or (
        f"expected an answer of the venn-admit service, got status {answer.status_code} from {answer.request.url.host}"
    )
    return family_of(code, answer.status_code)(
        str(detail),
        code=code,
        parameters=problem.get("parameters"),
        status=answer.status_code,
        request_id=answer.headers.get("X-Request-ID"),
    )


def _retry_after(answer: httpx.Response) -> float:
    """Return the seconds after which the service wants to be asked again; 0 if it does not say in seconds."""
    given = answer.headers.get("Retry-After", "")
    return float(given) if given.isascii() and given.isdigit() else 0.0
