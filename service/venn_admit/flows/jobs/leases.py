"""Keeping a claim on a chunk as long as the process that computes it lives."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from structlog.typing import FilteringBoundLogger

from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import at_once
from venn_admit.store.work import leases

# A lease outlasts several failed renewals, and native code that blocks other threads for a while.
RENEWALS_PER_LEASE = 6
# The least part of a lease that is left while it is renewed in time.
LEAST_PART_LEFT = 0.5


@contextmanager
def renewed_lease(
    engine: Engine, claim: leases.Claim, lease_seconds: float, log: FilteringBoundLogger
) -> Iterator[None]:
    """Renew a claim while the block runs, in a thread that stops or dies with the process."""
    ended = threading.Event()
    renewing = threading.Thread(
        target=_renew, args=(engine, claim, lease_seconds, ended, log), daemon=True, name="lease renewal"
    )
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()


def _renew(
    engine: Engine, claim: leases.Claim, lease_seconds: float, ended: threading.Event, log: FilteringBoundLogger
) -> None:
    while not ended.wait(lease_seconds / RENEWALS_PER_LEASE):
        try:
            with at_once(engine) as connection:
                if not leases.renew(connection, claim, lease_seconds=lease_seconds):
                    return
        except DatabaseError as error:
            log.warning("lease was not renewed", error=str(error))
