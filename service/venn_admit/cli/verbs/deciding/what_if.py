"""The verb `what-if`: what would change if something were different; nothing is stored."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name, labels_by_id, numbers
from venn_admit.cli.output import LARGEST_LIMIT, messages, print_result, shown
from venn_admit.errors import InvalidInputError

if TYPE_CHECKING:
    from venn_admit.report.what_if.training import TrainingEffects


def what_if(
    name: Name,
    relabel: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=CLASS", help="Suppose that a training exemplar has another label; may be repeated."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Suppose that a training exemplar is left out; may be repeated."),
    ] = None,
    alpha: Annotated[str | None, typer.Option(help="Error levels to try, separated by commas.")] = None,
    kappa: Annotated[str | None, typer.Option(help="Venn-ADMIT only: kappas to try, separated by commas.")] = None,
    delta: Annotated[str | None, typer.Option(help="Venn-ADMIT only: deltas to try, separated by commas.")] = None,
    q_bins: Annotated[
        list[str] | None, typer.Option(help="Bins of q to try: lower edges, separated by commas; may be repeated.")
    ] = None,
    thresholds: Annotated[
        str | None, typer.Option(help="Thresholds to try, each for every class, separated by commas.")
    ] = None,
    class_shares: Annotated[
        list[str] | None,
        typer.Option(
            help="Certificates only: class shares of traffic to try, one for each class, separated by commas; may be "
            "repeated."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, max=LARGEST_LIMIT, help="How many decisions that would differ to list.")
    ] = 20,
    out: Annotated[
        Path | None, typer.Option(help="With values to try: a folder for a picture of the result, and JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what would change under other training exemplars or another setting; nothing is stored.

    Either relabel training exemplars or leave them out: the calibration that would follow, and the decisions that would
    differ. Or name values of one part of the setting: what each admits of split mc by cross-fitting, and how much of it
    is right. Or name class shares: how much of such traffic the certified policy would admit, and how much of it may be
    wrong.
    """
    from venn_admit.core.calibrators.declaration import parse_decimal

    asked: dict[str, tuple[str | None, Callable[[str], Any], str]] = {
        "alpha": (alpha, lambda text: parse_decimal("alpha", text), "0.05,0.1"),
        "kappa": (kappa, int, "100,1000"),
        "delta": (delta, float, "1,2"),
        "thresholds": (thresholds, lambda text: parse_decimal("thresholds", text), "0.9,0.95"),
    }
    tried = {
        part: [] if text is None else numbers(f"--{part}", text, kind, example)
        for part, (text, kind, example) in asked.items()
    }
    tried["q_bins"] = [tuple(numbers("--q-bins", edges, int, "0,1,6")) for edges in q_bins or []]
    tried["class_shares"] = [
        tuple(numbers("--class-shares", each, lambda text: parse_decimal("class_shares", text), "0.7,0.3"))
        for each in class_shares or []
    ]
    given = [part for part, values in tried.items() if values]
    training = bool(relabel or leave_out)
    if len(given) + training != 1:
        raise InvalidInputError(
            "expected one question: training exemplars, by --relabel and --leave-out, or values of one part of the "
            f"setting, such as --alpha 0.05,0.1, or --class-shares; got {'several' if given else 'none'}"
        )
    if out is not None and given in ([], ["class_shares"]):
        raise InvalidInputError("--out: expected values of a part of the setting to try, such as --alpha 0.05,0.1")
    if class_shares:
        _shares(name, tried["class_shares"], as_json=as_json)
    elif given:
        _settings(name, given[0], tried[given[0]], out, as_json=as_json)
    else:
        _training(name, relabel or [], leave_out or [], limit, as_json=as_json)


def _training(name: str, relabel: list[str], leave_out: list[str], limit: int, *, as_json: bool) -> None:
    from venn_admit.flows.data.catalogue import find
    from venn_admit.flows.reports.what_if_training import what_if_training as flow
    from venn_admit.report.calibration.wording import section_tables
    from venn_admit.report.what_if.training import training_heading, training_payload, training_sections

    session = open_session()
    class_names = find(session.engine, name).class_names if relabel else ()
    labels = labels_by_id("--relabel", relabel, class_names, of="training exemplar")
    with messages.status("Computing what would change"):
        found = flow(session, name, relabel=labels, leave_out=leave_out)
    sections = training_sections(_escaped(found), limit=limit)
    print_result(as_json, training_payload(found), section_tables(training_heading(found), sections))


def _escaped(found: "TrainingEffects") -> "TrainingEffects":
    """Return the same with ids, which come from others, as a table shows them."""
    return replace(
        found,
        changes=tuple(replace(change, external_id=shown(change.external_id)) for change in found.changes),
        flipped=tuple(replace(flip, external_id=shown(flip.external_id)) for flip in found.flipped),
    )


def _shares(name: str, shares: Sequence[tuple[Decimal, ...]], *, as_json: bool) -> None:
    from venn_admit.flows.reports.what_if_shares import what_if_shares as flow
    from venn_admit.report.calibration.wording import section_tables
    from venn_admit.report.what_if.shares import shares_heading, shares_payload, shares_sections

    found = flow(open_session(), name, shares)
    print_result(as_json, shares_payload(found), section_tables(shares_heading(found), shares_sections(found)))


def _settings(name: str, varied: str, values: Sequence[Any], out: Path | None, *, as_json: bool) -> None:
    from venn_admit.files.output.atomic import make_folder
    from venn_admit.flows.reports.what_if_settings import what_if_settings as flow
    from venn_admit.report.evaluation.terminal import table_view
    from venn_admit.report.what_if.settings import settings_payload, settings_table

    if out is not None:
        make_folder(out)
    session = open_session()
    with messages.status("Cross-fitting the settings"):
        found = flow(session, name, varied, values)
    print_result(as_json, settings_payload(found), table_view(settings_table(found)))
    if out is not None:
        from venn_admit.flows.reports.folders import write_settings_tried

        picture = write_settings_tried(out, found)
        if not as_json:
            print_result(False, {}, f"The picture is in {picture}.")
