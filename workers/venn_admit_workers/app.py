"""The Celery application of workers and of beat. Importing this does nothing; `make_app` makes one."""

from contextlib import ExitStack

from celery import Celery
from celery.signals import setup_logging

from venn_admit.broker import check_address
from venn_admit.runtime.log import log_as_json
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit_workers.life import Life
from venn_admit_workers.schedule import add_schedule


def make_app(settings: Settings, *, computes: bool = True) -> Celery:
    """Make an application with its tasks, its schedule, and what happens at the start and the end of a worker.

    Its attribute `life` holds what lives as long as the process. The children of a worker inherit all this when they
    are forked.

    Args:
        computes: Whether it has the tasks; beat sends their names alone, and imports nothing that computes.

    Raises:
        DatabaseError: The database, which names the queues, cannot be reached.
        BrokerError: The address of the broker is none.
    """
    runtime = Runtime.start(
        settings, application_name="venn-admit-worker", idle_in_transaction_seconds=settings.chunk_seconds
    )
    with ExitStack() as opened:
        opened.callback(runtime.engine.dispose)
        app = runtime.make_celery()
        check_address(app)  # Celery would end with a traceback
        opened.pop_all()
    app.life = Life(app, runtime)
    app.life.follow_signals()
    setup_logging.connect(log_as_json)  # instead of Celery's own
    if computes:
        from venn_admit_workers.tasks import add_tasks

        add_tasks(app, runtime)
    add_schedule(app)
    return app
