"""The verb that shows and states by which rule points are drawn to be audited."""

from typing import Annotated

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import print_result
from venn_admit.errors import InvalidInputError


def audits(
    name: Name,
    rate: Annotated[
        float | None,
        typer.Option(help="With which probability admitted points are drawn that are first decided on from now on."),
    ] = None,
    class_rates: Annotated[
        list[str] | None,
        typer.Option("--class", help="CLASS=RATE, that of one predicted class; may be given several times."),
    ] = None,
    rejected: Annotated[
        float | None, typer.Option(help="With which probability rejected points are drawn; default: 1.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Draw nothing any more.")] = False,
    as_json: Json = False,
) -> None:
    """Show, or state, by which rule points are drawn to be audited when they are decided on.

    A keyed hash draws them, so that nobody can foretell or choose it. `label --selection review` then counts labels of
    drawn points by the probability, and all others as selected.
    """
    from venn_admit.cli.tables.summaries import audits_lines
    from venn_admit.flows.data.audits import set_audits, show_audits
    from venn_admit_client.members import as_json as json_of

    if off and rate is not None:
        raise InvalidInputError("expected --rate or --off, got both; leave one out")
    beside = "--class" if class_rates else "--rejected"
    if rate is None and (class_rates or rejected is not None):
        remedy = "leave it out" if off else "state the rate of all other points"
        raise InvalidInputError(f"expected --rate beside {beside}, got {'--off' if off else 'none'}; {remedy}")
    engine = open_session().engine
    if off or rate is not None:
        classes = _class_rates(class_rates or [])
        shown = set_audits(engine, name, rate=rate, classes=classes, rejected=1.0 if rejected is None else rejected)
    else:
        shown = show_audits(engine, name)
    print_result(as_json, json_of(shown), *audits_lines(shown))


def _class_rates(given: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in given:
        of_class, _, rate = one.rpartition("=")
        if of_class in found:
            raise InvalidInputError(f"--class: expected every class once, got {of_class!r} twice")
        try:
            found[of_class] = float(rate)
        except ValueError:
            raise InvalidInputError(f"--class: expected CLASS=RATE, such as spam=0.2, got {one!r}") from None
    return found
