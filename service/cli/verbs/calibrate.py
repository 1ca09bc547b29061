"""The verb `calibrate`, which stops if the default kappa leaves nearly nothing that could be admitted."""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, messages, print_result, warn
from venn_admit.service.cli.verbs.classifier import Name
from venn_admit.service.cli.waiting import run_job_with_progress, sender
from venn_admit.service.errors import InvalidInputError, NotReadyError

if TYPE_CHECKING:
    from venn_admit.service.cli.session import Session
    from venn_admit.service.flows.calibration.calibrate import SettingsOf

DECIMAL_PLACES = 20

KAPPA = 1000


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.SETTING_UP)(calibrate)


def calibrate(
    name: Name,
    alpha: Annotated[str, typer.Option(help="Error level in (0, 1), exact decimal.")] = "0.1",
    delta: Annotated[float, typer.Option(help="Band radius in standard deviations of d; inf: bands of q alone.")] = 1.0,
    kappa: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2**31 - 1,
            help=f"Least number of points of each class in a band. Default: {KAPPA}, unless that leaves nearly nothing "
            "to admit; then nothing is stored, and a table shows what other settings leave.",
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
        str | None, typer.Option(help="Lower edges of bins of q, such as 0,1,6,16,25; default: every q its own.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a calibration snapshot from the held-out data and make it current.

    kappa and the bins of q may be chosen by the labels of split mc, and by the table that this command prints, which
    is computed from mc alone. They must not be chosen by the labels of split vp: the probabilities would no longer
    be calibrated.
    """
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.core.calibrators.settings import make_settings
    from venn_admit.service.core.types import CalibratorSettings
    from venn_admit.service.flows.calibration.calibrate import calibrate as flow
    from venn_admit.service.flows.calibration.calibrate import request_approximations
    from venn_admit.service.store.exemplars.classifiers import Classifier

    asked: dict[str, Any] = {
        "alpha": _decimal("alpha", alpha),
        "delta": delta,
        "kappa": KAPPA if kappa is None else kappa,
    }
    if thresholds is not None:
        asked["thresholds"] = tuple(_decimal("thresholds", part) for part in thresholds.split(","))
    if q_bins is not None:
        asked["bin_edges"] = tuple(_integer("q-bins", part) for part in q_bins.split(","))

    def settings_of(classifier: Classifier) -> CalibratorSettings:
        return make_settings(classifier.class_count, classifier.neighbour_count, **asked)

    session = open_session()
    session.require_worker()
    job_id = request_approximations(
        session.engine, name, settings_of, chunk_rows=session.settings.chunk_rows, send=sender(session)
    )
    run_job_with_progress(session, job_id, "Approximating")
    if kappa is None:
        _stop_if_nearly_nothing_is_usable(session, name, settings_of, as_json)
    with messages.status("Calibrating"):
        done = flow(
            session.engine,
            name,
            settings_of,
            reason="asked for on the command line",
            keep=session.settings.keep_calibrations,
            memory_budget=session.memory_budget,
        )
    if done.usable_count == 0:
        hint = (
            f"--kappa {done.largest_kappa} would leave some; coarser --q-bins or a larger --delta would leave more"
            if done.largest_kappa
            else "every band lacks a class altogether; try coarser --q-bins or a larger --delta, or ingest more"
        )
        warn(f"kappa {done.settings.kappa} is above every band, so everything will be rejected: {hint}.")
    print_result(
        as_json,
        {
            "calibration": done.calibration_id,
            "alpha": str(done.settings.alpha),
            "delta": done.settings.delta,
            "kappa": done.settings.kappa,
            "s_hat": done.radius.s_hat,
            "omega": done.radius.omega,
            "mc": done.mc_count,
            "vp": done.vp_count,
            "vp_in_usable_bands": done.usable_count,
            "vp_singletons": done.singleton_count,
            "largest_usable_kappa": done.largest_kappa,
            "rows_closed": done.changed.closed,
            "rows_opened": done.changed.opened,
        },
        f"Calibration {done.calibration_id} is current: alpha {done.settings.alpha}, kappa "
        f"{done.settings.kappa}, omega {done.radius.omega:.4g}; points: {done.mc_count:,} mc, {done.vp_count:,} vp.",
        f"Of vp, {done.usable_count / done.vp_count:.1%} lie in bands with enough points, "
        f"{done.singleton_count / done.vp_count:.1%} have a singleton set; {done.changed.opened:,} rows written.",
        "Of these, a prediction is admitted if its lower probability reaches the threshold, so fewer will be: `report` "
        "and `score` say how many.",
    )


def _stop_if_nearly_nothing_is_usable(session: "Session", name: str, settings_of: "SettingsOf", as_json: bool) -> None:
    """Raise NotReadyError, below a table of what other settings leave usable, if the defaults leave nearly nothing."""
    from venn_admit.service.cli.shown.usable_table import refusal, usable_payload, usable_table
    from venn_admit.service.flows.calibration.usable_bands import compare_settings

    with messages.status("Counting usable bands"):
        classifier, shares = compare_settings(session.engine, name, settings_of, memory_budget=session.memory_budget)
    if not shares.nearly_nothing:
        return
    if as_json:
        print_result(True, usable_payload(classifier, shares))
    else:
        messages.print(usable_table(shares))
    raise NotReadyError(refusal(classifier, shares))


def _decimal(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    exponent = number.as_tuple().exponent
    # Few enough places for 1 - alpha to be exact; an exponent that is text is that of infinity or NaN.
    if isinstance(exponent, str) or exponent < -DECIMAL_PLACES:
        raise InvalidInputError(
            f"{option}: expected a decimal number with at most {DECIMAL_PLACES} places, got {text!r}"
        )
    return number


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"{option}: expected whole numbers, got {text!r}") from None
