"""The verb `recalibrate`: all recalibrations that are due, at once."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from venn_admit.advice import Step, Verb
from venn_admit.cli.advice import command
from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json
from venn_admit.cli.output import print_result
from venn_admit.cli.waiting import Waiting
from venn_admit.errors import NotReadyError
from venn_admit.report.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from venn_admit.cli.session import Session
    from venn_admit.flows.calibration.recalibrate import RecalibrationStep
    from venn_admit.store.work.recalibrations import RecalibrationRequest


def recalibrate(
    name: Annotated[str | None, typer.Argument(help="A classifier; default: all.")] = None, as_json: Json = False
) -> None:
    """Recalibrate now, under every setting that is not retired, if labels or data have arrived."""
    from venn_admit.flows.calibration.recalibrate import recalibrate as flow
    from venn_admit.flows.data.catalogue import settings_in_use
    from venn_admit.results import recalibrated_json

    session = open_session()
    with Waiting(session) as shell:
        served = flow(session, name, shell=shell)
    results = [recalibrated_json(request, step) for request, step in served]
    in_use = settings_in_use(session.engine, {request.classifier.name for request, _ in served})
    lines: list[RenderableType] = [
        _line(request, step, result, is_in_use=request.calibrator_id in in_use)
        for (request, step), result in zip(served, results, strict=True)
    ]
    print_result(as_json, {"recalibrations": results}, *(lines or [_nothing(session, name)]))
    failed = [result for result in results if result["error"]]
    if failed:
        raise NotReadyError(
            f"{len(failed)} of {len(results)} recalibrations failed: {failed[0]['classifier']}: {failed[0]['error']}"
        )


def _nothing(session: "Session", name: str | None) -> "RenderableType":
    """What is said if no recalibration is due."""
    from venn_admit.cli.tables.catalogue_tables import not_calibrated
    from venn_admit.flows.data.catalogue import count_waiting, list_calibrations
    from venn_admit.report.wording import waiting_text

    waiting = count_waiting(session.engine, name)
    found = None if name is None or waiting else list_calibrations(session.engine, name, limit=1)
    if found is not None and not found.settings:
        return not_calibrated(found.classifier)
    nothing = waiting_text(waiting) if waiting else "no labels or data have arrived since the last calibration."
    return f"Nothing to do: {nothing}"


def _standing(request: "RecalibrationRequest", result: dict[str, Any], *, is_in_use: bool) -> str:
    if result["withheld"] is None and is_in_use:
        return "is in use"
    if result["withheld"] is None:
        return "keeps its setting current, which is not in use"
    from venn_admit_client.records.calibrations import Withheld

    how = command(Step(Verb.USE, classifier=request.classifier.name, calibration=result["calibration"]))
    return f"is stored and not in use, because {Withheld(**result['withheld'])}; `{how}` puts it in use all the same"


def _certified(made: object) -> str:
    """What is said of the certificate that a snapshot was to have."""
    from venn_admit.methods.venn_abers.make import MadeByAbers

    if not isinstance(made, MadeByAbers) or made.certificate is None:
        return ""
    if made.average is not None:
        return "; the average promise takes the place of a certificate"
    return "; certified" if made.certificate.policy is not None else "; not certified, so that everything is rejected"


def _line(
    request: "RecalibrationRequest", step: "RecalibrationStep | None", result: dict[str, Any], *, is_in_use: bool
) -> str:
    from venn_admit.core.calibrators.arguments import setting_text
    from venn_admit.flows.calibration.standing import Advanced
    from venn_admit.report.standing import standing_text

    of = f"{result['classifier']} ({setting_text(request.settings)})"
    if result["error"]:
        return f"{of}: not recalibrated."
    if result["calibration"] is None:
        return f"{of}: another process recalibrated it meanwhile."
    made = None if step is None or step.calibrated is None else step.calibrated.made
    standing = _standing(request, result, is_in_use=is_in_use)
    if isinstance(made, Advanced):
        is_new = standing if made.is_new else "stays, as no label came that counts"
        said = standing_text(made.certificate, request.classifier.class_names)
        return f"{of}: calibration {result['calibration']} {is_new}. {said}"
    return (
        f"{of}: calibration {result['calibration']} {standing}; "
        f"for {result['reason']}, {counted(result['rows_closed'], 'row')} "
        f"closed and {result['rows_opened']:,} opened; points: {result['mc']:,} mc, {result['vp']:,} vp"
        f"{_certified(made)}."
    )
