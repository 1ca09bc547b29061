"""Verbs on how a calibration stands: `report`, and `monitor`, whether the promise still holds."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Calibration, Json, Name
from venn_admit.cli.output import messages, print_result, warn
from venn_admit.errors import AlarmError, InvalidInputError


def report(
    name: Name,
    calibration: Calibration = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report as an HTML page and JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Show the state of a calibration: what it can admit, drift, discrepancies, and which labels it lacks."""
    from venn_admit.cli.advice import command
    from venn_admit.files.output.atomic import make_folder
    from venn_admit.flows.reports.report import report as flow
    from venn_admit.report.calibration.payload import calibration_payload
    from venn_admit.report.calibration.wording import calibration_tables

    if out is not None:
        make_folder(out)
    session = open_session()
    with messages.status("Reading the calibration"):
        found = flow(session, name, calibration_id=calibration)
    print_result(as_json, calibration_payload(found, command), calibration_tables(found, command))
    if out is not None:
        from venn_admit.flows.reports.folders import write_calibration_report

        page = write_calibration_report(out, found, command)
        if not as_json:
            print_result(False, {}, f"The report is in {page}.")


def monitor(
    name: Name,
    webhook: Annotated[
        str | None, typer.Option(help="URL that each new alarm and notice is sent to, once, as a POST of JSON.")
    ] = None,
    prometheus: Annotated[
        Path | None, typer.Option(help="File for node_exporter's textfile collector, .prom; replaced each time.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="End the alarms and start again, counting what is decided on from now on.")
    ] = False,
    label_deadline: Annotated[
        str | None,
        typer.Option(
            help="Days after its decision by which a document is labelled, such as 14d, or none; fixed when a monitor "
            "is started. Documents then count in the order of decisions. Default: as the monitor before."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show whether the promise still holds, by random labels of decided points; look as often as you like.

    The exit code is 7 if an alarm stands. A notice, such as of a changed mix of partitions, is no alarm.
    """
    from venn_admit.cli.advice import due_lines
    from venn_admit.flows.reports.monitor import update_monitor as flow
    from venn_admit.flows.reports.notify import check_metrics, send_alarms, write_metrics
    from venn_admit.report.monitoring.payload import monitor_payload
    from venn_admit.report.monitoring.tables import monitor_tables
    from venn_admit.runtime.settings import accepted, days, is_webhook

    deadline = timedelta(0) if label_deadline == "none" else None if label_deadline is None else days(label_deadline)
    if webhook is not None and not is_webhook(webhook):
        # Without the URL, which may hold a token.
        raise InvalidInputError(f"--webhook: expected {accepted('monitor_webhook')}; correct the URL")
    if prometheus is not None:
        check_metrics(prometheus)
    session = open_session()
    with messages.status("Reading the labels"):
        found = flow(session.engine, name, restart=restart, label_deadline=deadline)
    if prometheus is not None:
        write_metrics(found, prometheus)
    if webhook is not None:
        with messages.status("Sending alarms"):
            failures = send_alarms(session.engine, found, webhook)
        for failure in failures:
            warn(failure)
    due = due_lines(name, len(found.to_withdraw) + len(found.to_give_back))
    print_result(as_json, monitor_payload(found), monitor_tables(found), *due)
    if found.harmful:
        raise AlarmError(
            f"{_alarms(len(found.harmful))} for classifier {name!r}: look into the newest labels and inputs"
        )


def _alarms(count: int) -> str:
    return "an alarm stands" if count == 1 else f"{count} alarms stand"
