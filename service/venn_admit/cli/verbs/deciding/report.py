"""`venn-admit report`: the state of a calibration."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.options import Calibration, Json, Name
from venn_admit.cli.output import messages, print_result


def report(
    name: Name,
    calibration: Calibration = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report as an HTML page and JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Show the state of a calibration: what it can admit, drift, discrepancies, and which labels it lacks."""
    from venn_admit.cli.advice import command
    from venn_admit.cli.session import open_session
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
