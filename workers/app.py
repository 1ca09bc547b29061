"""The Celery application, and what lives as long as a worker or one of its processes.

`celery -A workers.app worker` imports this; `venn-admit worker` runs that command.
"""

import gc
import logging
import os
import signal
import socket
import threading
import time
from functools import cache
from typing import Any, NoReturn

import structlog
from celery.signals import setup_logging, task_received, worker_init, worker_ready, worker_shutting_down
from celery.worker import state
from structlog.typing import EventDict, Processor

from service import broker
from service.errors import VennAdmitError
from service.flows.computing import chunk_runner
from service.flows.jobs.chunks import ChunkRunner
from service.secrets import mask
from service.settings import get_settings, secret_addresses, unknown_variables
from service.store.database import schema
from service.store.database.engine import create_engine, database_url, transaction
from service.store.search.array_cache import ArrayCache
from workers.consumption import Consumption
from workers.presence import Presence

# Within which a worker ends that computes nothing.
STOP_SECONDS = 10.0

settings = get_settings()
DATABASE_URL = database_url(settings)
engine = create_engine(
    DATABASE_URL,
    application_name="venn-admit-worker",
    statement_timeout_seconds=settings.statement_timeout_seconds,
    lock_timeout_seconds=settings.lock_timeout_seconds,
    idle_in_transaction_seconds=settings.chunk_seconds,
)
with transaction(engine) as _connection:
    QUEUE = broker.queue_name(_connection)
app = broker.make_app(
    broker.broker_url(settings.broker_url, DATABASE_URL), queue=QUEUE, task_seconds=settings.chunk_seconds
)
app.conf.imports = ("workers.tasks",)
consumption = Consumption(app)

log = structlog.get_logger()


def process_name(pid: int) -> str:
    """How a process of a worker on this machine is named in the chunks that it claims."""
    return f"{socket.gethostname()}:{pid}"


@cache
def own_runner() -> ChunkRunner:
    """This process's runner: first used, and so made, in the child that computes."""
    return chunk_runner(engine, ArrayCache(settings.home / "cache"), settings, worker=process_name(os.getpid()))


@setup_logging.connect
def _log_as_json(loglevel: int = logging.INFO, **_: object) -> None:
    """One JSON object a line, from us and from the libraries alike."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _mask_secrets,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(loglevel)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _mask_secrets(_logger: object, _method: str, entry: EventDict) -> EventDict:
    """A library may log the address of the broker or the database, in an exception for example."""
    addresses = secret_addresses(os.environ)
    return {key: mask(value, *addresses) if isinstance(value, str) else value for key, value in entry.items()}


@worker_init.connect
def _prepare(**_: object) -> None:
    """See that there is what a worker needs, or end: Celery would log what a receiver raises, and go on."""
    _log_as_json()
    for reason in unknown_variables(os.environ):
        log.warning("unknown variable", reason=reason)
    if settings.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, daemon=True, name="stdin").start()
    try:
        schema.require_usable(engine)
        broker.prepare(app)
    except VennAdmitError as error:
        log.error("worker cannot start", reason=str(error))  # noqa: TRY400 - the reason says it all
        raise SystemExit(error.exit_code) from error
    gc.freeze()  # what was imported stays: no collection shall touch it, in the children that share its memory or here


def _stop_with_stdin() -> None:
    """The program that started this worker holds the other end of its stdin: its death, of any kind, ends this."""
    # The descriptor itself: a lock of sys.stdin held here would be held forever in a forked child.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(settings.chunk_seconds)  # no task may take longer
    os.kill(os.getpid(), signal.SIGKILL)


def _end_deaf() -> NoReturn:
    """End this worker, which takes no messages, once it has finished the chunks that it has."""
    log.error("worker ends: messages wait, and it did not take any even after it reconnected")
    state.should_stop = broker.DEAF_EXIT_CODE
    while state.active_requests:
        time.sleep(STOP_SECONDS)
    time.sleep(STOP_SECONDS)
    os._exit(broker.DEAF_EXIT_CODE)  # the event loop does not heed `should_stop` if it stands still


presence = Presence(engine, consumption, end=_end_deaf)


@task_received.connect
def _count(**_: object) -> None:
    consumption.count_message()


@worker_ready.connect
def _announce(sender: Any, **_: object) -> None:
    consumption.begin(sender)
    presence.announce()


@worker_shutting_down.connect
def _leave(**_: object) -> None:
    """What is under way is finished, but nothing more is taken."""
    presence.leave()
