"""How a worker and beat log: as all that serve others, which Celery is told here."""

from celery.signals import setup_logging

from venn_admit.runtime.log import log_as_json


def log_as_json_from_the_start() -> None:
    """Make Celery set up its logging by `log_as_json`."""
    setup_logging.connect(log_as_json)
