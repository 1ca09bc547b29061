"""Verbs that use a calibration: score, evaluate, replay, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.classifier_commands import Name, run_job_with_progress
from service.cli.output import Json, make_report_folder, messages, output, progress, tell

Calibration = Annotated[int | None, typer.Option(help="Number of a calibration; default: the current one.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program."""
    for verb in (score, evaluate, replay, demo):
        app.command()(verb)


def score(
    name: Name,
    file: Annotated[Path, typer.Argument(help="Exemplars to score, .npz or .parquet.")],
    out: Annotated[Path, typer.Option(help="Where the decisions go, .parquet, a row for each of the file's.")],
    no_weights: Annotated[bool, typer.Option("--no-weights", help="Plain Venn probabilities.")] = False,
    q_equals_k: Annotated[bool, typer.Option("--q-equals-k", help="Reject every prediction with q < K.")] = False,
    calibration: Calibration = None,
    as_json: Json = False,
) -> None:
    """Admit or reject every row of a file."""
    from service.cli.session import open_session
    from service.files.exports import check_writable
    from service.flows.score import write_scores
    from service.store import decisions
    from service.store.engine import connect

    check_writable(out)
    session = open_session()
    request = score_file(
        session, name, file, weighted=not no_weights, require_full_match=q_equals_k, calibration=calibration
    )
    write_scores(session.engine, request.job_id, out)
    with connect(session.engine) as connection:
        counts = decisions.counts(connection, request.job_id)
    admitted = {str(decision): rows for decision, _, rows in counts if decision is not None}
    rejected = {str(reason): rows for _, reason, rows in counts if reason is not None}
    total = sum(admitted.values())
    tell(
        as_json,
        {
            "job": request.job_id,
            "calibration": request.calibration_id,
            "rows": request.rows,
            "admitted": admitted,
            "rejected": rejected,
            "out": str(out),
        },
        f"{file.name}: {request.rows:,} rows, {total:,} admitted ({total / request.rows:.1%}), by calibration "
        f"{request.calibration_id}; decisions are in {out}.",
        *(f"  rejected, {reason}: {rows:,}" for reason, rows in rejected.items()),
    )


def score_file(
    session: Any, name: str, file: Path, *, weighted: bool, require_full_match: bool, calibration: int | None
) -> Any:
    """Record and run the job that scores a file; the request."""
    from service.files import count_rows
    from service.flows.score import request_score

    session.require_worker()
    with progress(f"Storing {file.name}", count_rows(file)) as advance:
        request = request_score(
            session.engine,
            name,
            file,
            weighted=weighted,
            require_full_match=require_full_match,
            calibration_id=calibration,
            chunk_rows=session.settings.chunk_rows,
            on_rows=advance,
            memory_budget=session.memory_budget,
        )
    run_job_with_progress(session, request.job_id, f"Scoring {file.name}" + ("" if weighted else ", plain"))
    return request


def evaluate_file(session: Any, name: str, file: Path, title: str, calibration: int | None) -> Any:
    """Score the labelled rows of a file; the report that compares the methods on them."""
    from service.files import count_rows
    from service.flows.evaluate import request_evaluation_of_file

    session.require_worker()
    with progress(f"Storing {file.name}", count_rows(file)) as advance:
        request = request_evaluation_of_file(
            session.engine,
            name,
            file,
            calibration_id=calibration,
            chunk_rows=session.settings.chunk_rows,
            on_rows=advance,
            memory_budget=session.memory_budget,
        )
    return _compare(session, request, title)


def evaluate_decisions(session: Any, name: str, calibration: int | None) -> Any:
    """Compare the methods on all labelled exemplars that a calibration has decided on; the report."""
    from service.flows.evaluate import request_evaluation_of_decisions

    session.require_worker()
    request = request_evaluation_of_decisions(
        session.engine, name, calibration_id=calibration, chunk_rows=session.settings.chunk_rows
    )
    return _compare(session, request, f"calibration {request.calibration_id}")


def _compare(session: Any, request: Any, title: str) -> Any:
    from service.flows.evaluate import evaluate as flow

    if request.job_id is not None:
        run_job_with_progress(session, request.job_id, f"Scoring {title}")
    with messages.status("Comparing the methods"):
        return flow(session.engine, session.cache, request, title)


def evaluate(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(help="Labelled exemplars, .npz or .parquet; default: what the calibration has decided on."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Folder for the report: an HTML page, its charts as PNG, and JSON.")
    ] = None,
    calibration: Calibration = None,
    as_json: Json = False,
) -> None:
    """Compare what each method admits of labelled data, and how often it is right."""
    from service.cli.session import open_session
    from service.report.payload import report_payload
    from service.report.tables import report_tables

    if report is not None:
        make_report_folder(report)
    session = open_session()
    if file is None:
        result, source = evaluate_decisions(session, name, calibration), "its decisions"
    else:
        result, source = evaluate_file(session, name, file, file.stem, calibration), file.name
    payload = report_payload(result)
    if as_json:
        tell(True, payload)
    else:
        output.print(report_tables(result))
    if report is not None:
        from service.files.exports import write_json
        from service.report.page import write_report

        page, *_ = write_report(report, f"{name} on {source}", {"Classifier": name}, [result])
        write_json(report / "evaluation.json", payload)
        if not as_json:
            output.print(f"The report is in {page}.", highlight=False, soft_wrap=True)


def replay(
    decision: Annotated[int, typer.Argument(help="Number of a decision, from the view report.decision_v1.")],
    as_json: Json = False,
) -> None:
    """Compute a stored decision again from its snapshot, and show what it rests on."""
    from service.cli.replay import run

    run(decision, as_json=as_json)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo-report"),
) -> None:
    """Go the whole way on bundled real data: ingest, fit, calibrate, score, compare."""
    from service.cli.demo import run

    run(out)
