"""`venn-admit report`: how a calibration stands."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, make_report_folder, messages, output, print_result
from venn_admit.service.cli.verbs.classifier import Name
from venn_admit.service.cli.verbs.scoring import Calibration


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.DECIDING)(report)


def report(
    name: Name,
    calibration: Calibration = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report as an HTML page and JSON.")] = None,
    as_json: Json = False,
) -> None:
    """Show how a calibration stands: partitions, drift, discrepancies, and the labels it lacks."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.flows.reporting.report import report as flow
    from venn_admit.service.report.calibration.payload import calibration_payload
    from venn_admit.service.report.calibration.tables import calibration_tables

    if out is not None:
        make_report_folder(out)
    session = open_session()
    with messages.status("Reading the calibration"):
        found = flow(session.engine, name, calibration_id=calibration, memory_budget=session.memory_budget)
    payload = calibration_payload(found)
    if as_json:
        print_result(True, payload)
    else:
        output.print(calibration_tables(found))
    if out is not None:
        from venn_admit.service.files.output.exports import write_json
        from venn_admit.service.files.output.places import filling
        from venn_admit.service.report.pages.calibration import write_calibration_page

        with filling(out) as folder:
            page = write_calibration_page(found, folder)
            write_json(folder / "report.json", payload)
        if not as_json:
            print_result(False, {}, f"The report is in {out / page.name}.")
