"""Verbs on what is stored: list, show, calibrations, rename, retire."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import LARGEST_LIMIT, output, print_result


def list_classifiers(as_json: Json = False) -> None:
    """List the classifiers: their data, the calibration in use and the jobs that are running."""
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.catalogue_tables import classifiers_table
    from venn_admit.flows.data.catalogue import list_classifiers as flow
    from venn_admit.results import listed_json

    found = flow(open_session().engine)
    if as_json:
        print_result(True, {"classifiers": [listed_json(one) for one in found]})
    elif found:
        output.print(classifiers_table(found))
    else:
        output.print("There is no classifier yet: create one with `venn-admit create`.")


def show(name: Name, as_json: Json = False) -> None:
    """Show a classifier: its data, settings, newest jobs and last decisions."""
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.catalogue_tables import show_tables
    from venn_admit.flows.data.catalogue import show as flow
    from venn_admit.results import classifier_json

    found = flow(open_session().engine, name)
    if as_json:
        print_result(True, classifier_json(found))
    else:
        _print(show_tables(found))


def calibrations(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=LARGEST_LIMIT, help="How many calibrations to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List a classifier's newest calibrations, and the settings they were made under."""
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.catalogue_tables import calibrations_tables
    from venn_admit.flows.data.catalogue import list_calibrations as flow
    from venn_admit.results import calibrations_json

    found = flow(open_session().engine, name, limit=limit)
    if as_json:
        print_result(True, calibrations_json(name, found))
    else:
        _print(calibrations_tables(found))


def rename(name: Name, new: Annotated[str, typer.Argument(help="Its new name.")], as_json: Json = False) -> None:
    """Rename a classifier; everything that belongs to it stays as it is."""
    from venn_admit.cli.session import open_session
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
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.catalogue_tables import setting_text
    from venn_admit.flows.data.settings import retire as flow
    from venn_admit.results import setting_json

    retired = flow(open_session().engine, name, setting).setting(setting)
    print_result(
        as_json,
        {"classifier": name, **setting_json(retired)},
        f"Setting {setting} of {name} ({setting_text(retired.settings)}) is retired: it will not be recalibrated. "
        "Calibrating with the same options brings it back.",
    )


def _print(parts: Iterable[RenderableType]) -> None:
    for part in parts:
        output.print(part, soft_wrap=isinstance(part, Text))  # sentences are left to the terminal, tables are not
