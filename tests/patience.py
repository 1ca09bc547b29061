"""How long a test waits for what must come about."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 900.0
"""Only what would never come about takes as long: a machine with other work took 240 s for what takes 50 alone."""


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Return once the condition holds; fail where it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
