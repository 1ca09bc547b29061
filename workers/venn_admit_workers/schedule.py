"""What `venn-admit beat` starts, and when.

The sweeper bounds how long a lost message or a dead worker can delay a job. Jobs and recalibrations are checked often,
which costs a few statements if nothing is due, and so are monitors, if no label has come. Old jobs are removed for a
minute at a time.
"""

import logging
from typing import Any

import structlog
from celery import Celery
from celery.beat import PersistentScheduler

from venn_admit import broker
from venn_admit.cli.worker_process import note_tick
from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs

# The seconds between two messages of each task.
SCHEDULE = {broker.SWEEP: 5.0, broker.RECALIBRATE: 5.0, broker.MONITOR: 60.0, broker.PRUNE: 300.0}

log = structlog.get_logger()


class LiveScheduler(PersistentScheduler):  # type: ignore[misc] # Celery has no types
    """Sends nothing while no worker is up, because messages would pile up in the broker.

    It leaves a sign of life each time it has looked at what is due, for `db status --beat-here`.
    """

    def tick(self, *arguments: Any, **options: Any) -> float:
        """Send what is due, and return the seconds until more is."""
        seconds: float = super().tick(*arguments, **options)
        home = self.app.life.runtime.settings.home
        try:
            note_tick(home)
        except OSError as error:
            log.warning("the sign of life cannot be written", reason=str(error))
        return seconds

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send one task that is due."""
        try:
            with connect(self.app.life.runtime.engine) as connection:
                live = jobs.live_workers(connection)
        except DatabaseError as error:
            log.warning("cannot tell whether workers are up", task=entry.task, error=str(error))
            return
        if live:
            super().apply_entry(entry, producer=producer)


def add_schedule(app: Celery) -> None:
    """Give an application the schedule of beat."""
    app.conf.beat_scheduler = f"{__name__}:{LiveScheduler.__qualname__}"
    # No worker starts a task once the next is due.
    app.conf.beat_schedule = {
        task.rpartition(".")[2]: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
        for task, seconds in SCHEDULE.items()
    }
    for name in ("celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).addFilter(_is_of_note)


def _is_of_note(record: logging.LogRecord) -> bool:
    """Return whether a line is worth reading: of a task that beat sends, only that it did something, or failed."""
    told = record.args if isinstance(record.args, dict) else {}
    names = {str(value) for value in told.values() or record.args or ()}
    return record.levelno > logging.INFO or names.isdisjoint(SCHEDULE) or told.get("return_value", "0") != "0"
