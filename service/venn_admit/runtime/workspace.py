"""What a shell works with: the database, the broker, the cache, and the objects that compute with them.

A shell reads its settings and starts one runtime from them, which the flows are given as their workspace.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

from venn_admit.errors import BrokerError
from venn_admit.runtime.device import require_device
from venn_admit.runtime.settings import Settings
from venn_admit.store.database import schema
from venn_admit.store.database.address import database_url
from venn_admit.store.database.engine import check_server, connect, create_engine
from venn_admit.store.workspace import Workspace

if TYPE_CHECKING:
    from celery import Celery
    from structlog.typing import FilteringBoundLogger

    from venn_admit.flows.decisions.score_one import PointScorer
    from venn_admit.flows.jobs.chunks import ChunkRunner

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Runtime(Workspace):
    """The parts that one process shares. The shell that starts it disposes of its engine."""

    settings: Settings
    database_url: str

    @classmethod
    def start(
        cls, settings: Settings, *, application_name: str = "venn-admit", idle_in_transaction_seconds: int = 0
    ) -> Self:
        """Make the parts. This starts the embedded Postgres if the settings name no server, and connects to nothing.

        Args:
            application_name: The name under which the server lists the sessions of this process.
            idle_in_transaction_seconds: As in `create_engine`.

        Raises:
            DatabaseError: The embedded Postgres does not start.
        """
        url = database_url(settings)
        engine = create_engine(
            url,
            application_name=application_name,
            statement_timeout_seconds=settings.statement_timeout_seconds,
            lock_timeout_seconds=settings.lock_timeout_seconds,
            idle_in_transaction_seconds=idle_in_transaction_seconds,
            pool_size=settings.database_pool_size,
        )
        return cls(
            engine,
            settings.home / "cache",
            settings.memory_budget_mb << 20,
            chunk_rows=settings.chunk_rows,
            keep_calibrations=settings.keep_calibrations,
            device=settings.device,
            settings=settings,
            database_url=url,
        )

    def remove_abandoned(self) -> None:
        """Remove bodies of requests that processes of this machine kept in the home when they were killed."""
        from venn_admit.files.temporary import UPLOADS, remove_abandoned

        remove_abandoned(self.settings.home / UPLOADS)

    def check_server(self) -> None:
        """Raise DatabaseError unless the server can be reached and is recent enough; its schema may be any."""
        with connect(self.engine) as connection:
            check_server(connection)

    def check_schema(self) -> None:
        """Raise NotReadyError unless the schema of the database serves this program."""
        schema.require_usable(self.engine)

    def check_device(self) -> None:
        """Raise NotReadyError unless the device of the settings computes; for processes that compute jobs."""
        require_device(self.settings.device)

    def open_schema(self, *, migrate: bool | None) -> None:
        """Make sure that the database has the schema of this program.

        Args:
            migrate: Whether to bring the schema up to date; None: only that of the embedded Postgres, which is ours; if
                it held one before, the log says so.

        Raises:
            DatabaseError: The server cannot be reached or is too old.
            NotReadyError: The schema is missing or out of date.
        """
        self.check_server()
        if not (self.settings.database_url is None if migrate is None else migrate):
            schema.require_usable(self.engine)
        elif (current := schema.current_revision(self.engine)) != (head := schema.head_revision()):
            schema.upgrade_engine(self.engine)
            if migrate is None and current is not None and current < head:
                log.warning(
                    "the database was upgraded from revision %s to %s: earlier versions may not work on it any more",
                    current,
                    head,
                )

    @cached_property
    def broker(self) -> "Celery":
        """The application that sends messages; its queues exist. BrokerError if the broker does not answer."""
        from venn_admit import broker

        app = self.make_celery()
        broker.prepare(app)
        return app

    def make_celery(self) -> "Celery":
        """Make a Celery application on the broker, which need not be up yet; the database names its queues."""
        from venn_admit import broker

        with connect(self.engine) as connection:
            queue = broker.queue_name(connection)
        url = broker.broker_url(self.settings.broker_url, self.database_url)
        return broker.make_app(url, queue=queue, task_seconds=self.settings.chunk_seconds)

    def send(self, job_id: int) -> None:
        """Send a job's chunks to workers.

        Raises:
            BrokerError: The broker cannot be reached. The job is cancelled then, unless a worker knows of it.
        """
        from venn_admit.flows.jobs.control import cancelled_if_unsent, relay

        with cancelled_if_unsent(self.engine, job_id):
            relay(self.engine, self.broker, job_id)

    def send_removal(self) -> None:
        """Have a worker delete what is left of removed jobs; if the broker cannot be reached, beat does so later."""
        from venn_admit import broker

        with suppress(BrokerError):
            broker.send_upkeep(self.broker, broker.PRUNE)

    @cached_property
    def point_scorer(self) -> "PointScorer":
        """Decides on one vector at a time, and caches the snapshots that were used last."""
        from venn_admit.flows.decisions.score_one import PointScorer

        return PointScorer(self)

    def chunk_runner(self, worker: str, *, log: "FilteringBoundLogger | None" = None) -> "ChunkRunner":
        """Return a runner of chunks of every kind.

        Args:
            worker: The name of this process in the chunks that it claims.
            log: Where it logs; None: as structlog is configured.
        """
        from venn_admit.flows.computing import chunk_runner

        return chunk_runner(self, self.settings, worker=worker, log=log)
