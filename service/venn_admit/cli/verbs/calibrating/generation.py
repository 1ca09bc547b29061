"""The verbs of `generation`: a new extractor takes a new generation, which is calibrated and switched to."""

from typing import TYPE_CHECKING, Annotated

import typer

from venn_admit.advice import Verb
from venn_admit.cli.advice import run
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name, OwnExtractor
from venn_admit.cli.output import print_result

if TYPE_CHECKING:
    from venn_admit.flows.calibration.generations import Switch
    from venn_admit.flows.data.catalogue import Listed


def create_generation(
    name: Name,
    dim: Annotated[
        int | None, typer.Option(help="D, the length of an exemplar vector. Default: that of the current generation.")
    ] = None,
    extractor: OwnExtractor = None,
    as_json: Json = False,
) -> None:
    """Add a generation, to be calibrated while the current one is in use.

    It has the classes, K and seed of the current one, so that the same documents fall in the same splits. Every verb
    takes it as NAME@NUMBER.
    """
    from venn_admit.flows.calibration.generations import create_generation as flow
    from venn_admit.results import created_json

    made = flow(open_session().engine, name, dimension=dim, extractor=extractor)
    size = "logits only" if made.knn is None else f"D = {made.knn.dimension}, K = {made.knn.neighbour_count}"
    print_result(
        as_json,
        created_json(made),
        f"Created {made.name}: {size}, {_extractor(made.extractor)}. Ingest its exemplars, fit and calibrate it under "
        f"this name, then {run(Verb.SWITCH_GENERATION, generation=made.name)}.",
    )


def list_generations(name: Name, as_json: Json = False) -> None:
    """List the generations of a classifier, and which of them its name stands for."""
    from venn_admit.cli.tables.catalogue_tables import generations_table
    from venn_admit.flows.calibration.generations import list_generations as flow
    from venn_admit.results import generations_json

    found = flow(open_session().engine, name)
    print_result(as_json, generations_json(found), generations_table(found))


def switch(
    generation: Annotated[str, typer.Argument(help="The generation, as NAME@NUMBER.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Have a classifier's name stand for another generation from now on; switching back is the same.

    What is under way goes on with the generation that it began with, and decisions made by the other one stay.
    """
    from venn_admit.flows.calibration.generations import switch as flow
    from venn_admit.results import switch_json

    done = flow(open_session().engine, generation, dry_run=dry_run)
    print_result(as_json, switch_json(done), *_switched(done))


def extractor(
    name: Name, version: Annotated[str, typer.Argument(help="Version of the extractor.")], as_json: Json = False
) -> None:
    """State which extractor the vectors come from, or correct that while no exemplars are stored."""
    from venn_admit.flows.calibration.generations import state_extractor
    from venn_admit.results import created_json

    found = state_extractor(open_session().engine, name, version)
    print_result(as_json, created_json(found), f"The vectors of {found.name} come from extractor {found.extractor}.")


def _switched(done: "Switch") -> list[str]:
    from venn_admit.report.wording import never_admitted_text

    name, number = done.after.classifier.shared_name, done.after.classifier.generation
    if not done.changes:
        return [f"{name} stands for generation {number} already: nothing changes."]
    verb = "stands" if done.is_made else "would stand"
    said = [
        f"{name} {verb} for generation {number} ({_described(done.after)}) instead of "
        f"{done.before.classifier.generation} ({_described(done.before)}), which is {done.before.classifier.address}."
    ]
    if done.never_admitted:
        said.append(never_admitted_text(number, done.never_admitted))
    in_use = done.after.in_use
    if in_use is not None and in_use.due_for is not None:
        said.append(f"A recalibration of {done.after.classifier.address} is due for {in_use.due_for}.")
    return said


def _described(one: "Listed") -> str:
    from venn_admit.core.calibrators.arguments import setting_text

    said = _extractor(one.classifier.extractor)
    if one.in_use is None:
        return f"{said}, not calibrated"
    return f"{said}, calibration {one.in_use.calibration_id}, {setting_text(one.in_use.settings)}"


def _extractor(version: str | None) -> str:
    return "extractor not stated" if version is None else f"extractor {version}"
