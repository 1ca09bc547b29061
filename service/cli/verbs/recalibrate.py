"""The verb `recalibrate`: what waits to be recalibrated, at once."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from venn_admit.service.cli import panels
from venn_admit.service.cli.output import Json, cell, messages, print_result
from venn_admit.service.cli.waiting import run_job_with_progress, sender
from venn_admit.service.errors import NotReadyError

if TYPE_CHECKING:
    from venn_admit.service.cli.session import Session
    from venn_admit.service.flows.calibration.recalibrate import Step
    from venn_admit.service.store.work.recalibrations import RecalibrationRequest


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command(rich_help_panel=panels.SETTING_UP)(recalibrate)


def recalibrate(
    name: Annotated[str | None, typer.Argument(help="A classifier; default: all.")] = None, as_json: Json = False
) -> None:
    """Recalibrate at once if labels or data have arrived since, under every setting that is not retired."""
    from venn_admit.service.cli.session import open_session
    from venn_admit.service.flows.calibration.recalibrate import retry_and_list

    session = open_session()
    requests = retry_and_list(session.engine, name)
    if requests:
        session.require_worker()
    results = [_result(request, _serve(session, request)) for request in requests]
    print_result(
        as_json,
        {"recalibrations": results},
        *([_line(result) for result in results] or ["Nothing to do: no label or data have come since."]),
    )
    failed = [result for result in results if result["error"]]
    if failed:
        raise NotReadyError(
            f"{len(failed)} of {len(results)} recalibrations could not be made: {failed[0]['classifier']}: "
            f"{failed[0]['error']}"
        )


def _serve(session: "Session", request: "RecalibrationRequest") -> "Step | None":
    """Step by step, to the snapshot or to what stands against it; None where another process made the snapshot."""
    from venn_admit.service.flows.calibration.recalibrate import recalibrate_step

    while True:
        with messages.status(cell(f"Recalibrating {request.classifier.name}")):
            step = recalibrate_step(
                session.engine,
                request,
                chunk_rows=session.settings.chunk_rows,
                quiet_seconds=0,
                wait_seconds=0,
                keep=session.settings.keep_calibrations,
                memory_budget=session.memory_budget,
                wait=True,
                send=sender(session),
            )
        if step is None or step.calibrated is not None or step.error is not None:
            return step
        if step.job_id is not None:
            run_job_with_progress(session, step.job_id, f"Approximating {request.classifier.name}")


def _result(request: "RecalibrationRequest", step: "Step | None") -> dict[str, Any]:
    done = None if step is None else step.calibrated
    return {
        "classifier": request.classifier.name,
        "alpha": str(request.settings.alpha),
        "delta": request.settings.delta,
        "kappa": request.settings.kappa,
        "reason": request.reason,
        "calibration": None if done is None else done.calibration_id,
        "mc": None if done is None else done.mc_count,
        "vp": None if done is None else done.vp_count,
        "rows_closed": None if done is None else done.changed.closed,
        "rows_opened": None if done is None else done.changed.opened,
        "error": None if step is None else step.error,
    }


def _line(result: dict[str, Any]) -> str:
    of = f"{result['classifier']} (alpha {result['alpha']}, delta {result['delta']:g}, kappa {result['kappa']})"
    if result["error"]:
        return f"{of}: not recalibrated."
    if result["calibration"] is None:
        return f"{of}: another process recalibrated it meanwhile."
    return (
        f"{of}: calibration {result['calibration']} is current; for {result['reason']}, {result['rows_closed']:,} rows "
        f"closed and {result['rows_opened']:,} opened; points: {result['mc']:,} mc, {result['vp']:,} vp."
    )
