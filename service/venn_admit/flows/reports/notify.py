"""What monitors say to others: alarms to a webhook, figures to a file, and keeping all of them up to date."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from venn_admit.errors import VennAdmitError
from venn_admit.files.output.atomic import check_output, replacing, writing
from venn_admit.files.output.exports import finite_json
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.logger import log
from venn_admit.report.monitoring.payload import alarm_payload
from venn_admit.report.monitoring.report import MonitorReport, metrics_text
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.decisions import alarms, monitors

ANSWER_SECONDS = 10.0
"""A webhook must answer within this time."""
METRICS_ENDING = ".prom"
"""The ending of the files that node_exporter's textfile collector reads."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, which tells nobody of an alarm."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def check_metrics(path: Path) -> None:
    """Raise InvalidInputError unless metrics can be written to a file."""
    check_output(path, (METRICS_ENDING,))


def send_alarms(engine: Engine, report: MonitorReport, url: str) -> list[str]:
    """POST each alarm and notice that no webhook took yet, as JSON; return what failed, to be tried again next time.

    url: one that the setting of it accepts. Another process that sends the same alarms at the same time is left to it.
    """
    known = {alarm.id: alarm for alarm in report.alarms}
    failures = []
    with transaction(engine) as connection:
        for alarm_id in alarms.lock_unsent(connection, report.monitor):
            if alarm_id not in known:
                continue
            try:
                failure = _post(url, alarm_payload(report, known[alarm_id]))
            except OSError as error:
                failures.append(f"the webhook cannot be reached: {_reason(error)}; alarms are sent again next time")
                break  # the others would wait as long, and what waits here keeps rows locked
            if failure is None:
                alarms.set_notified(connection, alarm_id)
            else:
                failures.append(f"the webhook did not take alarm {alarm_id}: {failure}; it is sent again next time")
    return failures


def write_metrics(report: MonitorReport, path: Path) -> None:
    """Write the figures in the text format of Prometheus; the file appears complete."""
    with replacing(path) as file, writing(path):
        file.write(metrics_text(report).encode())


def _post(url: str, payload: dict[str, Any]) -> str | None:
    """What failed; None if the webhook answered with a status of success. Raises OSError if it cannot be reached."""
    body = json.dumps(finite_json(payload), allow_nan=False).encode()
    request = urllib.request.Request(  # noqa: S310 - `is_webhook` has seen to it that it is HTTP
        url, data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=ANSWER_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:
            return f"it answered with status {error.code}"
    except (HTTPException, ValueError) as error:
        return type(error).__name__  # alone, because the message may quote the URL


def _reason(error: OSError) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(reason) or type(error).__name__


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
