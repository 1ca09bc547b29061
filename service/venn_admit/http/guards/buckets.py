"""Token buckets: how often something may happen."""

import math
import time
from collections.abc import Callable


class Bucket:
    """Fills at a steady rate up to what may happen at once; each event takes one token.

    Attributes:
        burst: How many tokens it holds.
    """

    def __init__(self, per_minute: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.burst = burst
        self._per_second = per_minute / 60
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def take(self) -> float:
        """Take a token; return 0, or if there is none, after how many seconds there will be one.

        >>> bucket = Bucket(60, 1, clock=lambda: 0.0)
        >>> bucket.take(), bucket.take()
        (0.0, 1.0)
        """
        self._fill()
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._per_second

    @property
    def left(self) -> int:
        """How many tokens there are."""
        return math.floor(self._tokens)

    @property
    def seconds_to_full(self) -> float:
        """After how many seconds it is full again if nothing is taken."""
        return (self.burst - self._tokens) / self._per_second

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
