"""When a request is sent again, and how long to wait before."""

import random
from dataclasses import dataclass

from .errors import InvalidInputError

# Too many requests, and what a proxy says while the service behind it restarts.
TEMPORARY = frozenset({429, 502, 503, 504})
# The earlier attempt, whose answer was lost, is still being executed.
STILL_RUNNING = "still-running"
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Retries:
    """How long a request that is not answered is tried: exponential back-off with jitter, within a time limit.

    Attributes:
        total_seconds: No attempt begins later than this after the first one, or after the service last said that an
            earlier one is still being executed; 0: there is one attempt alone.
        first_wait: Seconds before the second attempt, which double from attempt to attempt.
        longest_wait: Seconds that they double up to. If the service asks for more by `Retry-After`, that holds.
    """

    total_seconds: float = 120.0
    first_wait: float = 0.25
    longest_wait: float = 10.0

    def __post_init__(self) -> None:
        for name in ("total_seconds", "first_wait", "longest_wait"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise InvalidInputError(f"{name}: expected a number of seconds, 0 or more, got {value}")

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after `failures` (>= 1); programs that failed together wait apart."""
        doubled = self.first_wait * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
        jitter = random.uniform(0.5, 1)  # noqa: S311 - it spreads load and hides nothing
        return min(doubled, self.longest_wait) * jitter


def is_temporary(status: int, code: str) -> bool:
    """Whether the same request may be answered later."""
    return status in TEMPORARY or code == STILL_RUNNING
