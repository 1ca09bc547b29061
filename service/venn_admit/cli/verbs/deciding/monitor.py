"""The verb `monitor`: whether the promise still holds, as far as random labels tell."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import messages, print_result, warn
from venn_admit.errors import AlarmError


def monitor(
    name: Name,
    webhook: Annotated[
        str | None, typer.Option(help="URL that each new alarm is sent to, once, as a POST of JSON.")
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(help="File for node_exporter's textfile collector, .prom; replaced each time.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="End the alarms and start again, counting labels from now on only.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show whether the promise still holds, by random labels of decided points; look as often as you like.

    The exit code is 7 if an alarm stands. A notice, such as of a changed mix of partitions, is no alarm.
    """
    from venn_admit.cli.session import open_session
    from venn_admit.flows.reports.monitor import update_monitor as flow
    from venn_admit.flows.reports.notify import check_metrics, check_webhook, send_alarms, write_metrics
    from venn_admit.report.monitoring.payload import monitor_payload
    from venn_admit.report.monitoring.tables import monitor_tables

    if webhook is not None:
        check_webhook(webhook)
    if prometheus is not None:
        check_metrics(prometheus)
    session = open_session()
    with messages.status("Reading the labels"):
        found = flow(session.engine, name, restart=restart)
    if prometheus is not None:
        write_metrics(found, prometheus)
    if webhook is not None:
        with messages.status("Sending alarms"):
            failures = send_alarms(session.engine, found, webhook)
        for failure in failures:
            warn(failure)
    print_result(as_json, monitor_payload(found), monitor_tables(found))
    if found.harmful:
        raise AlarmError(
            f"{_alarms(len(found.harmful))} of classifier {name!r}: look into the newest labels and inputs"
        )


def _alarms(count: int) -> str:
    return "an alarm stands" if count == 1 else f"{count} alarms stand"
