"""Monitors kept up to date without anybody looking: what beat has a worker do."""

import structlog
from sqlalchemy import Engine

from venn_admit.errors import VennAdmitError
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.notify import check_webhook, send_alarms
from venn_admit.store.database.engine import connect
from venn_admit.store.decisions import monitors

log = structlog.get_logger()


def update_behind(engine: Engine, webhook: str | None) -> list[str]:
    """Update the monitors that have not read the newest labels, and return the names of their classifiers.

    If one of them fails, the error is logged and the others go on.

    Args:
        webhook: Where each new alarm is sent; one that could not be sent is sent again next time.
    """
    with connect(engine) as connection:
        names = monitors.behind(connection, unsent=webhook is not None)
    updated = []
    for name in names:
        of_classifier = log.bind(classifier=name)
        try:
            found = update_monitor(engine, name)
            failures = []
            if webhook is not None:
                check_webhook(webhook)
                failures = send_alarms(engine, found, webhook)
        except VennAdmitError:
            of_classifier.exception("monitoring failed")
            continue
        for failure in failures:
            of_classifier.warning("an alarm was not sent", error=failure)
        say = of_classifier.warning if found.harmful else of_classifier.info
        say("monitored", documents=found.documents, alarms=len(found.harmful), notices=len(found.notices))
        updated.append(name)
    return updated
