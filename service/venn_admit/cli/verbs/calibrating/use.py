"""The verb `use`: another calibration in use."""

from typing import Annotated

import typer

from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import print_result


def use(
    name: Name,
    calibration: Annotated[int, typer.Argument(help="Number of a calibration, from `venn-admit calibrations NAME`.")],
    reason: Annotated[str | None, typer.Option(help="Why, for the history of what was in use.")] = None,
    as_json: Json = False,
) -> None:
    """Put a stored calibration in use, whatever it admits.

    Its setting is kept current from now on: labels and data that arrive make calibrations that follow it.
    """
    from venn_admit.cli.session import open_session
    from venn_admit.flows.calibration.in_use import use as flow
    from venn_admit.results import in_use_json

    done = flow(open_session().engine, name, calibration, reason=reason)
    before = "none was" if done.before is None else f"calibration {done.before} was"
    said = f"in use; {before} in use before." if done.is_changed else "in use already: nothing changes."
    print_result(as_json, in_use_json(name, done), f"Calibration {calibration} of {name} is {said}")
