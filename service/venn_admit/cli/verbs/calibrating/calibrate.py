"""The verb `calibrate`, which stops if the default kappa leaves nearly nothing that could be admitted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from venn_admit.cli import panels
from venn_admit.cli.output import Json, messages, output, print_result, warn
from venn_admit.cli.verbs.calibrating.classifier import Name
from venn_admit.cli.waiting import Waiting
from venn_admit.errors import InvalidInputError, NotReadyError

if TYPE_CHECKING:
    from venn_admit.flows.calibration.calibrate import Calibrated, NearlyNothingUsable
    from venn_admit.methods.venn_admit.make import MadeByAdmit
METHOD = "venn-admit"
KAPPA = 1000


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.SETTING_UP)(calibrate)


def calibrate(
    name: Name,
    alpha: Annotated[str, typer.Option(help="Error level in (0, 1), exact decimal.")] = "0.1",
    method: Annotated[
        str,
        typer.Option(
            help="`venn-admit`: the paper's, by bands of the KNN's evidence; `venn-abers`: on the network's "
            "prediction, ranked by a score."
        ),
    ] = METHOD,
    score: Annotated[
        str | None,
        typer.Option(
            help="Venn-Abers only: network, reliability, or auto, the default: whichever admits more of split mc."
        ),
    ] = None,
    certify: Annotated[
        str | None,
        typer.Option(
            help="Venn-Abers only: certify thresholds by a test on split vp, for predicted, true or, as in "
            "predicted,true, both kinds of classes. If no policy passes, everything is rejected."
        ),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="Confidence of a certificate in (0, 1), exact decimal. Default: 0.95.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="How documents of several points are tested for a certificate: finite-sample, the default, or "
            "asymptotic, which passes with fewer documents and is valid for very many only."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Venn-ADMIT only: band radius in standard deviations of d; inf: bands depend on q only. Default: 1."
        ),
    ] = None,
    kappa: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2**31 - 1,
            help=f"Venn-ADMIT only: least number of points of each class in a band. Default: {KAPPA}, unless that "
            "leaves nearly nothing to admit; then nothing is stored, and a table shows what other settings leave.",
        ),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(
            help="Least lower probability per predicted class, in the order of the classes, such as 0.9,0.95; each at "
            "least 1 - alpha, the default."
        ),
    ] = None,
    q_bins: Annotated[
        str | None,
        typer.Option(
            help="Lower edges of bins of q, such as 0,1,6,16,25; default: one bin for each q; for Venn-Abers, one bin."
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Store nothing: show what settings of each method admit of split mc, how much of it is right, and "
            "which to take. Besides it, only --alpha, --details and --json.",
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option("--details", help="With --compare: every setting, not only the best of each method and score."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute a calibration snapshot from the held-out data and make it current.

    kappa and the bins of q may be chosen by the labels of split mc, and by the tables that this command prints, which
    are computed from mc alone. They must not be chosen by the labels of split vp: the probabilities would no longer
    be calibrated.
    """
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.calibration_tables import print_cells
    from venn_admit.core.calibrators.settings import parse_decimal
    from venn_admit.flows.calibration.asked import settings_asked_for
    from venn_admit.flows.calibration.calibrate import NearlyNothingUsable
    from venn_admit.flows.calibration.calibrate import calibrate as flow
    from venn_admit.methods.venn_abers.make import MadeByAbers
    from venn_admit.methods.venn_admit.make import MadeByAdmit

    if compare:
        others = {"method": method if method != METHOD else None, "score": score, "delta": delta, "kappa": kappa}
        others |= {"thresholds": thresholds, "q-bins": q_bins, "certify": certify, "confidence": confidence}
        others |= {"test": test}
        compare_settings(name, alpha, others, details=details, as_json=as_json)
        return
    if details:
        raise InvalidInputError("details: expected only together with --compare, got it without; leave it out")
    settings_of = settings_asked_for(
        method,
        alpha=parse_decimal("alpha", alpha),
        thresholds=None
        if thresholds is None
        else [parse_decimal("thresholds", part) for part in thresholds.split(",")],
        q_bins=None if q_bins is None else [_integer("q-bins", part) for part in q_bins.split(",")],
        delta=delta,
        kappa=kappa,
        score=score,
        default_kappa=KAPPA,
        certify=None if certify is None else [part.strip() for part in certify.split(",")],
        confidence=None if confidence is None else parse_decimal("confidence", confidence),
        test=test,
    )
    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        done = flow(
            session,
            name,
            settings_of,
            shell=shell,
            reason="asked for on the command line",
            even_if_nearly_nothing_is_usable=kappa is not None,
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
    from venn_admit.payloads.calibrated import calibrated_payload

    if made.usable_count == 0:
        hint = (
            f"--kappa {made.largest_kappa} would leave some; coarser --q-bins or a larger --delta would leave more"
            if made.largest_kappa
            else "every band lacks at least one class; try coarser --q-bins or a larger --delta, or ingest more"
        )
        warn(f"no band holds {done.settings.kappa} points of every class, so everything will be rejected: {hint}.")
    print_result(
        as_json,
        calibrated_payload(done),
        f"Calibration {done.calibration_id} is current: alpha {done.settings.alpha}, kappa "
        f"{done.settings.kappa}, omega {made.radius.omega:.4g}; points: {done.mc_count:,} mc, {done.vp_count:,} vp.",
        f"In vp, {made.usable_count / done.vp_count:.1%} lie in bands with enough points, "
        f"{made.singleton_count / done.vp_count:.1%} have a singleton set; {done.changed.opened:,} rows written.",
        "A prediction with a singleton set is admitted if its lower probability also reaches the threshold, so fewer "
        "will be; `report` and `score` say how many.",
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


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"{option}: expected whole numbers, got {text!r}") from None


def compare_settings(name: str, alpha: str, others: Mapping[str, object], *, details: bool, as_json: bool) -> None:
    """Print what each setting admits of mc, and which command to run next.

    others: by name, the options of `calibrate` that no comparison takes, None if they were not given. details: whether
    every setting is printed, or only those that matter.
    """
    from venn_admit.cli.session import open_session
    from venn_admit.cli.tables.compared_settings import compared_payload, compared_table, next_lines
    from venn_admit.core.calibrators.settings import parse_decimal
    from venn_admit.flows.calibration.compare import compare

    given = [f"--{option}" for option, value in others.items() if value is not None]
    if given:
        raise InvalidInputError(
            "--compare takes no other option than --alpha, --details and --json, because it compares settings of every "
            f"method; got {', '.join(given)}; leave out one or the other"
        )
    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        found = compare(session, name, parse_decimal("alpha", alpha), shell=shell)
    if not as_json:
        output.print(compared_table(found, details=details))
    print_result(as_json, compared_payload(found), *next_lines(found))
