"""The verb `calibrate`, which stops if the default kappa leaves nearly nothing that could be admitted."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json, Name
from venn_admit.cli.output import messages, print_result, warn
from venn_admit.cli.setting_options import option_name, read_options, with_files, with_setting_options
from venn_admit.cli.waiting import Waiting
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.settings import DEFAULT_ALPHA
from venn_admit.core.method_names import DEFAULT_METHOD
from venn_admit.errors import InvalidInputError, NotReadyError

if TYPE_CHECKING:
    from venn_admit.flows.calibration.calibrate import Calibrated, NearlyNothingUsable
    from venn_admit.methods.venn_admit.make import MadeByAdmit


@with_setting_options
def calibrate(
    name: Name,
    method: Annotated[
        str,
        typer.Option(
            help="`venn-abers`: on the network's prediction, ranked by a score, with the promise that --promise says; "
            f"`venn-admit`: the paper's, by bands of the KNN's evidence; it promises: {Promised.POINTWISE.sentence}."
        ),
    ] = DEFAULT_METHOD,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Store nothing: foretell what the default and certificates would admit, and show what settings of "
            "each method admit of split mc, how much of it is right, and which to take. Besides it, only --alpha, "
            "--details and --json.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Compute and show everything, and store no calibration. A certificate that was looked at is not "
            "counted then: count it if you choose by what you see.",
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option("--details", help="With --compare: every setting, not only the best of each method and score."),
    ] = False,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Compute a calibration snapshot from the held-out data and put it in use.

    If it admits less than half of what the calibration in use does, it is stored and not put in use, unless other
    settings were asked for and it admits something; `use` puts it in use all the same.

    kappa and the bins of q may be chosen by the labels of split mc, and by the tables that this command prints, which
    are computed from mc alone. They must not be chosen by the labels of split vp: the probabilities would no longer
    be calibrated.
    """
    from venn_admit.cli.tables.calibration_tables import print_cells
    from venn_admit.flows.calibration.calibrate import NearlyNothingUsable, settings_for
    from venn_admit.flows.calibration.calibrate import calibrate as flow
    from venn_admit.flows.data.catalogue import find
    from venn_admit.methods.venn_abers.make import MadeByAbers
    from venn_admit.methods.venn_admit.make import MadeByAdmit

    asked = read_options(given)
    if compare:
        others = {"method": None if method == DEFAULT_METHOD else method, "dry_run": dry_run or None, **asked}
        compare_settings(name, others.pop("alpha"), others, details=details, as_json=as_json)
        return
    if details:
        raise InvalidInputError("details: expected only together with --compare, got it without; leave it out")
    session = open_session()
    classifier = find(session.engine, name)
    settings = settings_for(classifier, method, with_files(asked, classifier.class_names))
    session.require_worker()
    with Waiting(session) as shell:
        done = flow(
            session,
            classifier,
            settings,
            shell=shell,
            reason="asked for on the command line",
            even_if_nearly_nothing_is_usable=asked.get("kappa") is not None,
            dry_run=dry_run,
        )
    if isinstance(done, NearlyNothingUsable):
        _refuse(done, as_json)
    if isinstance(done.made, MadeByAdmit):
        _print_bands(done, done.made, as_json)
    else:
        assert isinstance(done.made, MadeByAbers), "there are two methods"
        print_cells(done, done.made, as_json)


def _print_bands(done: "Calibrated", made: "MadeByAdmit", as_json: bool) -> None:
    """Print what Venn-ADMIT made."""
    from venn_admit.cli.tables.calibration_tables import far_less_lines, standing_text, written_text
    from venn_admit.results import calibrated_json

    if made.usable_count == 0:
        hint = (
            f"--kappa {made.largest_kappa} would leave some; coarser --q-bins or a larger --delta would leave more"
            if made.largest_kappa
            else "every band lacks at least one class; try coarser --q-bins or a larger --delta, or ingest more"
        )
        warn(f"no band holds {done.settings.kappa} points of every class, so everything will be rejected: {hint}.")
    points, where = f"{done.mc_count:,} mc, {done.vp_count:,} vp", "In vp"
    if done.settings.undivided:
        points, where = f"{done.vp_count:,} of mc and vp, undivided", "Among them"
    print_result(
        as_json,
        calibrated_json(done),
        f"{standing_text(done)}: alpha {done.settings.alpha}, kappa {done.settings.kappa}, omega "
        f"{made.radius.omega:.4g}; points: {points}.",
        f"{where}, {made.usable_count / done.vp_count:.1%} lie in bands with enough points, "
        f"{made.singleton_count / done.vp_count:.1%} have a singleton set{written_text(done)}.",
        "A prediction with a singleton set is admitted if its lower probability also reaches the threshold, so fewer "
        "will be; `report` and `score` say how many.",
        *far_less_lines(done),
    )


def _refuse(found: "NearlyNothingUsable", as_json: bool) -> NoReturn:
    """Print what other settings leave usable, and raise NotReadyError."""
    from venn_admit.cli.advice import command
    from venn_admit.cli.tables.calibration_tables import usable_payload, usable_table

    if as_json:
        print_result(True, usable_payload(found))
    else:
        messages.print(usable_table(found.shares))
    raise NotReadyError(f"{found.refusal(command)}; or choose another setting from the table")


def compare_settings(
    name: str, alpha: Decimal | None, others: Mapping[str, object], *, details: bool, as_json: bool
) -> None:
    """Print what each setting admits of mc, and which command to run next.

    others: by name, the options of `calibrate` that no comparison takes, None if they were not given. details: whether
    every setting is printed, or only those that matter.
    """
    from venn_admit.cli.advice import command
    from venn_admit.flows.calibration.compare import compare
    from venn_admit.report.what_if.compared import compared_payload, compared_table, next_lines

    given = [f"--{option_name(option)}" for option, value in others.items() if value is not None]
    if given:
        raise InvalidInputError(
            "--compare takes no other option than --alpha, --details and --json, because it compares settings of every "
            "method, and foretells certificates for classes by right and wrong alone, without losses, groups or class "
            f"shares; got {', '.join(given)}; leave out one or the other"
        )
    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        found = compare(session, name, DEFAULT_ALPHA if alpha is None else alpha, shell=shell)
    table = compared_table(found, rest=None if details else "add --details")
    print_result(as_json, compared_payload(found, command), table, *next_lines(found, command))
