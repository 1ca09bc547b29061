"""Requests to a tool for labelling: to its host alone, with the token, and sent again while that is safe."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2 as httpx

from venn_admit.errors import InvalidInputError, VennAdmitError
from venn_admit.files.text_files import MOST_BYTES
from venn_admit.secrets import address_of, mask

ANSWER_SECONDS = 60.0
"""For how long a tool may be silent."""
WAITS = (0.5, 2.0, 8.0)
"""Seconds before the second attempt, the third and the last; a tool that asks for more is given up to a minute."""
_MOST_WAIT = 60.0
_LIKELY = {
    401: "; the token is not accepted; give one that the tool has issued, and that has not been revoked",
    403: "; the owner of the token may not do this; give the token of somebody who manages the project or dataset",
    404: "; it is not there, or the owner of the token may not see it; correct the address",
}
_MOST_SHOWN = 300


class Web:
    """Sends requests to one tool. It follows no redirect, since the token would go with it."""

    def __init__(
        self, base: str, headers: Mapping[str, str], token: str, *, renew: Callable[[], Mapping[str, str]] | None = None
    ) -> None:
        """Prepare for requests; none is sent yet.

        Args:
            headers: What signs requests; none yet if `renew` has to be asked first.
            renew: Returns new ones, if those may expire.
        """
        self._base, self._headers, self._renew = base, headers, renew
        self._token = token
        self._client = httpx.Client(timeout=ANSWER_SECONDS, headers={"Accept": "application/json"})

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, **query: str | int) -> Any:
        """Return what is at a path, as JSON.

        Raises:
            InvalidInputError: The tool refuses, or answers something else.
            VennAdmitError: It does not answer.
        """
        return self._signed("GET", path, query, None)

    def post(self, path: str, body: object) -> Any:
        """Send JSON to a path and return the answer; it is sent again only if it was surely not executed.

        Raises as `get` does.
        """
        return self._signed("POST", path, {}, body)

    def exchange(self, path: str, body: object) -> Any:
        """Send JSON that changes nothing, without signing it, and return the answer. Raises as `get` does."""
        return self._sent("POST", path, {}, body, {}, is_safe=True)

    def _signed(self, method: str, path: str, query: Mapping[str, Any], body: object) -> Any:
        may_renew = self._renew is not None
        while True:
            if not self._headers and self._renew is not None:
                self._headers, may_renew = self._renew(), False
            try:
                return self._sent(method, path, query, body, self._headers, is_safe=method == "GET")
            except _RefusedError as refusal:
                if refusal.status != 401 or not may_renew:
                    raise
            self._headers = {}

    def _sent(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: object,
        headers: Mapping[str, str],
        *,
        is_safe: bool,
    ) -> Any:
        url = f"{self._base}/{path}"
        where = f"{method} {url}"
        for wait in (*WAITS, None):
            error: VennAdmitError
            asked = 0.0
            try:
                status, given, content = self._attempt(method, url, query, body, headers)
            except httpx.RequestError as failure:
                may_repeat = is_safe or isinstance(failure, httpx.ConnectError | httpx.ConnectTimeout)
                error = VennAdmitError(
                    f"{where}: expected an answer, got {type(failure).__name__}: {self.shown(str(failure))}; correct "
                    "the address, or try again later"
                )
                error.__cause__ = failure
            else:
                if 200 <= status < 300:
                    return _parsed(where, content)
                error = self._refusal(where, status, given, content)
                may_repeat = _is_temporary(status) and (is_safe or status == 429)
                asked = min(_seconds(given.get("Retry-After", "")), _MOST_WAIT)
            if wait is None or not may_repeat:
                raise error
            time.sleep(max(wait, asked))
        raise AssertionError("the last attempt returns or raises")

    def _attempt(
        self, method: str, url: str, query: Mapping[str, Any], body: object, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        content = bytearray()
        with self._client.stream(method, url, params=query, json=body, headers=headers) as answer:
            for block in answer.iter_bytes():
                content += block
                if len(content) > MOST_BYTES:
                    raise InvalidInputError(
                        f"{method} {url}: expected at most {MOST_BYTES:,} bytes, got more; export the labels to files, "
                        "and import these"
                    )
        return answer.status_code, answer.headers, bytes(content)

    def _refusal(self, where: str, status: int, headers: Mapping[str, str], content: bytes) -> VennAdmitError:
        if status < 400:
            target = self.shown(headers.get("Location", "").partition("?")[0])
            got = (
                f"a redirect to {target!a}, which is not followed, since the token would go there; correct the address"
            )
        else:
            try:
                said = f": {self.shown(json.dumps(json.loads(content)))}"
            except (ValueError, RecursionError):
                said = ""
            got = f"status {status}{said}{_LIKELY.get(status, '')}"
        message = f"{where}: expected an answer, got {got}"
        return (
            VennAdmitError(f"{message}; try again later") if _is_temporary(status) else _RefusedError(message, status)
        )

    def shown(self, text: str) -> str:
        """Return what a message shows of a text that the tool sent: its beginning, without what signs requests."""
        signing = (value.rpartition(" ")[2] for value in self._headers.values())
        text = mask(text, *map(address_of, (self._token, *signing)))
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


class _RefusedError(InvalidInputError):
    """The tool answered with a status that is no success."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def is_token(text: str) -> bool:
    """Return whether a header can hold a text."""
    return bool(text) and text.isascii() and text.isprintable()


def _is_temporary(status: int) -> bool:
    return status == 429 or status >= 500


def _parsed(where: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{where}: expected JSON, got something else; give the address of the project or dataset in the browser"
        ) from error


def _seconds(given: str) -> float:
    """The seconds of a `Retry-After`; 0 if it is a date, or is not given."""
    return float(given) if given.isascii() and given.isdigit() else 0.0
