"""The verb `calibrate`, which stops if the default kappa leaves nearly nothing that could be admitted."""

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, messages, print_result, warn
from venn_admit.service.cli.verbs.classifier import Name
from venn_admit.service.cli.waiting import Waiting
from venn_admit.service.errors import InvalidInputError, NotReadyError

if TYPE_CHECKING:
    from venn_admit.service.flows.awaited import NearlyNothingUsable

KAPPA = 1000


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.SETTING_UP)(calibrate)


def calibrate(
    name: Name,
    alpha: Annotated[str, typer.Option(help="Error level in (0, 1), exact decimal.")] = "0.1",
    delta: Annotated[
        float, typer.Option(help="Band radius in standard deviations of d; inf: bands depend on q only.")
    ] = 1.0,
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
        str | None, typer.Option(help="Lower edges of bins of q, such as 0,1,6,16,25; default: one bin for each q.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a calibration snapshot from the held-out data and make it current.

    kappa and the bins of q may be chosen by the labels of split mc, and by the table that this command prints, which
    is computed from mc alone. They must not be chosen by the labels of split vp: the probabilities would no longer
    be calibrated.
    """
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.core.calibrators.settings import make_settings, parse_decimal
    from venn_admit.service.core.types import CalibratorSettings
    from venn_admit.service.flows.awaited import NearlyNothingUsable
    from venn_admit.service.flows.awaited import calibrate as flow
    from venn_admit.service.store.exemplars.classifiers import Classifier

    asked: dict[str, Any] = {
        "alpha": parse_decimal("alpha", alpha),
        "delta": delta,
        "kappa": KAPPA if kappa is None else kappa,
    }
    if thresholds is not None:
        asked["thresholds"] = tuple(parse_decimal("thresholds", part) for part in thresholds.split(","))
    if q_bins is not None:
        asked["bin_edges"] = tuple(_integer("q-bins", part) for part in q_bins.split(","))

    def settings_of(classifier: Classifier) -> CalibratorSettings:
        return make_settings(classifier.class_count, classifier.neighbour_count, **asked)

    session = open_session()
    session.require_worker()
    with Waiting(session) as shell:
        done = flow(
            session.engine,
            name,
            settings_of,
            chunk_rows=session.settings.chunk_rows,
            shell=shell,
            keep=session.settings.keep_calibrations,
            reason="asked for on the command line",
            even_if_nearly_nothing_is_usable=kappa is not None,
            memory_budget=session.memory_budget,
        )
    if isinstance(done, NearlyNothingUsable):
        _refuse(done, as_json)
    made = done.by_admit
    if made.usable_count == 0:
        hint = (
            f"--kappa {made.largest_kappa} would leave some; coarser --q-bins or a larger --delta would leave more"
            if made.largest_kappa
            else "every band lacks at least one class; try coarser --q-bins or a larger --delta, or ingest more"
        )
        warn(f"no band holds {done.settings.kappa} points of every class, so everything will be rejected: {hint}.")
    print_result(
        as_json,
        {
            "calibration": done.calibration_id,
            "alpha": str(done.settings.alpha),
            "delta": done.settings.delta,
            "kappa": done.settings.kappa,
            "s_hat": made.radius.s_hat,
            "omega": made.radius.omega,
            "mc": done.mc_count,
            "vp": done.vp_count,
            "vp_in_usable_bands": made.usable_count,
            "vp_singletons": made.singleton_count,
            "largest_usable_kappa": made.largest_kappa,
            "rows_closed": done.changed.closed,
            "rows_opened": done.changed.opened,
        },
        f"Calibration {done.calibration_id} is current: alpha {done.settings.alpha}, kappa "
        f"{done.settings.kappa}, omega {made.radius.omega:.4g}; points: {done.mc_count:,} mc, {done.vp_count:,} vp.",
        f"Of vp, {made.usable_count / done.vp_count:.1%} lie in bands with enough points, "
        f"{made.singleton_count / done.vp_count:.1%} have a singleton set; {done.changed.opened:,} rows written.",
        "A prediction with a singleton set is admitted if its lower probability also reaches the threshold, so fewer "
        "will be; `report` and `score` say how many.",
    )


def _refuse(found: "NearlyNothingUsable", as_json: bool) -> NoReturn:
    """Print what other settings leave usable, and raise NotReadyError."""
    from venn_admit.service.cli.shown.usable_table import refusal, usable_payload, usable_table

    if as_json:
        print_result(True, usable_payload(found.classifier, found.shares))
    else:
        messages.print(usable_table(found.shares))
    raise NotReadyError(refusal(found.classifier, found.shares))


def _integer(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"{option}: expected whole numbers, got {text!r}") from None
