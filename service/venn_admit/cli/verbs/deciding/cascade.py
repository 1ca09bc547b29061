"""The verbs of `cascade`: several classifiers that are asked one after the other, under one promise."""

from pathlib import Path
from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Stating, with_records
from venn_admit.cli.output import print_result
from venn_admit.cli.waiting import Waiting
from venn_admit.core.calibrators.cascade_settings import DEFAULT_KINDS, DEFAULT_TEST
from venn_admit.core.calibrators.certification import DEFAULT_CONFIDENCE
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA
from venn_admit.errors import InvalidInputError
from venn_admit_client.members import as_json as json_of

CascadeName = Annotated[str, typer.Argument(help="The cascade's name.")]


def create(
    name: CascadeName,
    stages: Annotated[
        list[str],
        typer.Argument(
            metavar="STAGE[=COST]...",
            help="Classifiers in the order in which they are asked, each with what a point costs that reaches it, such "
            "as small=1 large=20 person=300; person may be the last. Costs are 0 by default, in any unit.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Create a cascade of classifiers that have the same classes; it stays with their generations of today."""
    from venn_admit.cli.tables.cascade_tables import cascade_lines
    from venn_admit.flows.cascades.manage import create as flow

    found = flow(open_session().engine, name, [_stage(text) for text in stages])
    print_result(as_json, json_of(found), *cascade_lines(found))


def _stage(text: str) -> tuple[str, float]:
    name, sign, cost = text.rpartition("=")
    if not sign:
        return text, 0.0
    try:
        return name, float(cost)
    except ValueError:
        raise InvalidInputError(f"stage {text!r}: expected a number after =, such as small=1.5, got {cost!r}") from None


def list_cascades(as_json: Json = False) -> None:
    """List the cascades."""
    from venn_admit.cli.tables.cascade_tables import cascades_table
    from venn_admit.flows.cascades.manage import every

    found = every(open_session().engine)
    shown = cascades_table(found) if found else "There is no cascade yet: create one with `venn-admit cascade create`."
    print_result(as_json, {"cascades": [json_of(one) for one in found]}, shown)


def calibrate(
    name: CascadeName,
    alpha: Annotated[
        str | None,
        typer.Option(help=f"Share of what is served of each class that may be wrong. Default: {DEFAULT_ALPHA}."),
    ] = None,
    certify: Annotated[
        str | None,
        typer.Option(
            help=f"Classes that are promised something: predicted, true, or both. Default: {','.join(DEFAULT_KINDS)}."
        ),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help=f"Confidence of the certificate. Default: {DEFAULT_CONFIDENCE}.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(help=f"How documents of several points are tested. Default: {DEFAULT_TEST}.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Certify a cascade on the labels that all of its classifiers hold out, by the scores of their calibrations in use.

    It serves by this certificate from then on. All that were made looked at the same labels, and are counted. Workers
    compute it as a job of the first classifier, which can be cancelled and resumed.
    """
    from venn_admit.cli.tables.cascade_tables import cascade_lines
    from venn_admit.flows.cascades.certify import cascade_settings_for
    from venn_admit.flows.cascades.certify import certify as flow

    asked = cascade_settings_for({"alpha": alpha, "certify": certify, "confidence": confidence, "test": test})
    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        found = flow(session, name, asked, shell=shell)
    print_result(as_json, json_of(found), *cascade_lines(found))


def report(name: CascadeName, as_json: Json = False) -> None:
    """Show what each stage of a cascade serves of the labelled data, how much of it is right, and what that costs."""
    from venn_admit.cli.tables.cascade_tables import cascade_lines
    from venn_admit.flows.cascades.manage import show

    found = show(open_session().engine, name)
    print_result(as_json, json_of(found), *cascade_lines(found))


@with_records
def score(
    name: CascadeName,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Exemplars, .npz or .parquet, a file for each stage in order; those of a later stage may hold the "
            "points alone that reach it. Stages that are left out are asked another time.",
        ),
    ] = None,
    jobs: Annotated[
        list[int] | None,
        typer.Option("--job", help="Instead of a file: a job in which a first stage has scored; several in order."),
    ] = None,
    *,
    out: Annotated[
        Path, typer.Option(help="Where the answers go, .parquet or .csv, a row for each of the first file.")
    ],
    stating: Stating,
    as_json: Json = False,
) -> None:
    """Serve every point by the first stage that admits it, and say which stage each of the others needs next."""
    from venn_admit.cli.tables.cascade_tables import served_lines
    from venn_admit.files.output.tables import check_table_output
    from venn_admit.flows.cascades.serve import score as flow
    from venn_admit.flows.cascades.serve import write_served

    check_table_output(out, *(files or []))
    session = open_session()
    session.require_worker()
    with Waiting(session, out) as shell:
        found, done = flow(
            session,
            name,
            [session.exemplars_in(file, stating) for file in files or []],
            earlier_jobs=jobs or [],
            shell=shell,
        )
    write_served(found, out)
    shown = json_of(found)
    counts = {one: shown[one] for one in ("certificate", "stages", "cost", "cost_of_last")}
    payload = {"jobs": done, "rows": len(found.ids), **counts, "out": str(out)}
    print_result(as_json, payload, *served_lines(name, found, done, out))


def delete(name: CascadeName, as_json: Json = False) -> None:
    """Delete a cascade with its certificates; its classifiers, and all that they decided, stay."""
    from venn_admit.flows.cascades.manage import delete as flow

    flow(open_session().engine, name)
    print_result(as_json, {"cascade": name}, f"Deleted the cascade {name}; its classifiers stay.")
