"""The Celery application, and what lives as long as a worker or one of its processes.

`celery -A workers.app worker` imports this; `venn-admit worker` runs that command.
"""

import logging
import os
import signal
import socket
import threading
from functools import cache

import structlog
from celery.signals import setup_logging, worker_init, worker_shutdown
from sqlalchemy import Connection

from service import broker
from service.flows.chunks import ChunkRunner
from service.settings import get_settings
from service.store import jobs, schema
from service.store.array_cache import ArrayCache
from service.store.engine import create_engine, database_url, transaction

settings = get_settings()
DATABASE_URL = database_url(settings)
engine = create_engine(
    DATABASE_URL,
    application_name="venn-admit-worker",
    statement_timeout_seconds=settings.statement_timeout_seconds,
    lock_timeout_seconds=settings.lock_timeout_seconds,
)
app = broker.make_app(broker.broker_url(settings.broker_url, DATABASE_URL), lease_seconds=settings.lease_seconds)
app.conf.imports = ("workers.tasks",)

_presence: list[Connection] = []


@cache
def chunk_runner() -> ChunkRunner:
    """This process's runner: first used, and so made, in the child that computes."""
    return ChunkRunner(
        engine, ArrayCache(settings.home / "cache"), settings, worker=f"{socket.gethostname()}:{os.getpid()}"
    )


@setup_logging.connect
def _log_as_json(loglevel: int = logging.INFO, **_: object) -> None:
    """One JSON object a line, from us and from the libraries alike."""
    shared = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(loglevel)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


@worker_init.connect
def _announce(**_: object) -> None:
    """Hold the presence lock on a connection of its own for as long as this worker lives."""
    schema.require_head(engine)
    with transaction(engine) as connection:
        broker.prepare(app.conf.broker_url, connection)
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    jobs.announce_worker(connection)
    _presence.append(connection)
    if settings.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, daemon=True).start()


def _stop_with_stdin() -> None:
    """The program that started this worker holds the other end of its stdin: its death, of any kind, ends this."""
    # The descriptor itself: a lock of sys.stdin held here would be held forever in a forked child.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@worker_shutdown.connect
def _leave(**_: object) -> None:
    for connection in _presence:
        connection.close()
