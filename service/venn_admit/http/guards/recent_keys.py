"""Keys that were looked up just now, for routes that see before they answer that a key is still valid."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable

from fastapi import Request

from venn_admit.flows.keys.keys import Caller

SECONDS = 1.0
_MOST = 1000


class RecentKeys:
    """Whose the keys are that were looked up within the last second, by digests of what requests show."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    def get(self, request: Request) -> Caller | None:
        """Return whose key a request shows; None if it was not looked up within the last second."""
        seen_at, caller = self._known.get(_digest(request), (0.0, None))
        return caller if caller is not None and self._clock() - seen_at <= SECONDS else None

    def add(self, request: Request, caller: Caller) -> None:
        """Remember whose key a request shows."""
        digest = _digest(request)
        self._known[digest] = self._clock(), caller
        self._known.move_to_end(digest)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)


def _digest(request: Request) -> bytes:
    return hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
