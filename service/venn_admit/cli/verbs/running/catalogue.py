"""Verbs on what is stored: list, show, calibrations, use, rename, retire."""

from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import LARGEST_LIMIT, print_result, warn


def list_classifiers(as_json: Json = False) -> None:
    """List the classifiers: their data, the calibration in use and the jobs that are running."""
    from venn_admit.cli.tables.catalogue_tables import classifiers_table
    from venn_admit.flows.data.catalogue import list_classifiers as flow
    from venn_admit.results import listed_json

    found = flow(open_session().engine)
    shown = classifiers_table(found) if found else "There is no classifier yet: create one with `venn-admit create`."
    print_result(as_json, {"classifiers": [listed_json(one) for one in found]}, shown)


def show(name: Name, as_json: Json = False) -> None:
    """Show a classifier: its data, settings, newest jobs and last decisions."""
    from venn_admit.cli.tables.catalogue_tables import show_tables
    from venn_admit.flows.data.catalogue import show as flow
    from venn_admit.results import classifier_json

    found = flow(open_session().engine, name)
    print_result(as_json, classifier_json(found), *show_tables(found))


def calibrations(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=LARGEST_LIMIT, help="How many calibrations to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List a classifier's newest calibrations, and the settings they were made under."""
    from venn_admit.cli.tables.catalogue_tables import calibrations_tables
    from venn_admit.flows.data.catalogue import list_calibrations as flow
    from venn_admit.results import calibrations_json

    found = flow(open_session().engine, name, limit=limit)
    print_result(as_json, calibrations_json(name, found), *calibrations_tables(found))


def use(
    name: Name,
    calibration: Annotated[int, typer.Argument(help="Number of a calibration, from `venn-admit calibrations NAME`.")],
    reason: Annotated[str | None, typer.Option(help="Why, for the history of what was in use.")] = None,
    as_json: Json = False,
) -> None:
    """Put a stored calibration in use, whatever it admits.

    Its setting is kept current from now on: labels and data that arrive make calibrations that follow it.
    """
    from venn_admit.flows.calibration.in_use import use as flow
    from venn_admit.report.wording import admits_nothing_text
    from venn_admit.results import in_use_json

    done = flow(open_session().engine, name, calibration, reason=reason)
    before = "none was" if done.before is None else f"calibration {done.before} was"
    said = f"in use; {before} in use before." if done.is_changed else "in use already: nothing changes."
    if done.admits_nothing:
        warn(admits_nothing_text(calibration))
    print_result(as_json, in_use_json(name, done), f"Calibration {calibration} of {name} is {said}")


def rename(name: Name, new: Annotated[str, typer.Argument(help="Its new name.")], as_json: Json = False) -> None:
    """Rename a classifier; everything that belongs to it stays as it is."""
    from venn_admit.flows.data.settings import rename as flow

    flow(open_session().engine, name, new)
    print_result(as_json, {"classifier": new, "renamed_from": name}, f"Renamed {name} to {new}.")


def retire(
    name: Name,
    setting: Annotated[int, typer.Argument(help="Id of a setting, from `venn-admit calibrations NAME`.")],
    as_json: Json = False,
) -> None:
    """Stop recalibrating a setting; calibrating with the same options brings it back.

    Its calibrations and the decisions made with them stay. The setting in use cannot be retired.
    """
    from venn_admit.core.calibrators.arguments import setting_text
    from venn_admit.flows.data.settings import retire as flow
    from venn_admit.results import setting_json

    retired = flow(open_session().engine, name, setting).setting(setting)
    print_result(
        as_json,
        {"classifier": name, **setting_json(retired)},
        f"Setting {setting} of {name} ({setting_text(retired.settings)}) is retired: it will not be recalibrated. "
        "Calibrating with the same options brings it back.",
    )
