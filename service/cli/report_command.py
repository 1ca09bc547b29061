"""`venn-admit report`: how a calibration stands."""

import typer

from service.cli.classifier_commands import Name
from service.cli.output import Json, messages, output, tell
from service.cli.scoring_commands import Calibration


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command()(report)


def report(name: Name, calibration: Calibration = None, as_json: Json = False) -> None:
    """Show how a calibration stands: partitions, drift, discrepancies, and the labels it lacks."""
    from service.cli.session import open_session
    from service.flows.report import report as flow
    from service.report.calibration_payload import calibration_payload
    from service.report.calibration_tables import calibration_tables

    session = open_session()
    with messages.status("Reading the calibration"):
        found = flow(session.engine, name, calibration_id=calibration)
    if as_json:
        tell(True, calibration_payload(found))
    else:
        output.print(calibration_tables(found))
