"""Verbs on jobs: list, show, cancel, resume."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli import panels
from service.cli.output import Json, output, tell

JobNumber = Annotated[int, typer.Argument(help="Number of a job, from `venn-admit jobs list`.")]


def register(app: typer.Typer) -> None:
    """Add the verbs to the program, as `jobs`."""
    jobs = typer.Typer(no_args_is_help=True, help="See what work was asked for and how far it is; cancel or resume it.")
    jobs.command(name="list")(list_jobs)
    for verb in (show, cancel, resume):
        jobs.command()(verb)
    app.add_typer(jobs, name="jobs", rich_help_panel=panels.STORED)


def list_jobs(
    name: Annotated[str | None, typer.Argument(help="A classifier; default: all.")] = None,
    most: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List jobs with their state and progress, the newest first."""
    from service.cli.session import open_session
    from service.store import classifiers, jobs
    from service.store.engine import connect

    with connect(open_session().engine) as connection:
        classifier_id = None if name is None else classifiers.by_name(connection, name).id
        rows = [_plain(row) for row in jobs.summaries(connection, most=most, classifier_id=classifier_id)]
    if as_json:
        tell(True, {"jobs": rows})
    elif rows:
        columns = ("job", "classifier", "kind", "state", "rows_done", "rows", "chunks_failed", "most_attempts", "error")
        output.print(_table(rows, columns))
    else:
        output.print("No job yet.")


def show(job: JobNumber, as_json: Json = False) -> None:
    """Show one job and its chunks: state, attempts, worker, and what went wrong last."""
    from service.cli.session import open_session
    from service.store import jobs
    from service.store.engine import connect

    with connect(open_session().engine) as connection:
        jobs.by_id(connection, job)
        (summary,) = (_plain(row) for row in jobs.summaries(connection, most=1, job_id=job))
        chunks = [_plain(row) for row in jobs.chunks(connection, job)]
    if as_json:
        tell(True, {**summary, "chunk_list": chunks})
        return
    tell(False, {}, _headline(summary), *([f"Error: {summary['error']}"] if summary["error"] else []))
    if chunks:
        waiting = ["not_before"] if any(chunk["not_before"] for chunk in chunks) else []
        columns = ("chunk", "first_row", "end_row", "state", "attempts", *waiting, "worker", "error")
        output.print(_table(chunks, columns))


def cancel(job: JobNumber, as_json: Json = False) -> None:
    """Cancel a running job; a chunk that is being computed is finished, and what is done stays."""
    from service.cli.session import open_session
    from service.flows.jobs import cancel as flow

    flow(open_session().engine, job)
    tell(as_json, {"job": job, "state": "cancelled"}, f"Job {job} is cancelled.")


def resume(
    job: JobNumber,
    out: Annotated[
        Path | None, typer.Option(help="Where the decisions of a score job go, .parquet, as `score --out` has them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """See a job through: one that was interrupted, failed or cancelled goes on from what is not done."""
    from service.cli.classifier_commands import run_job_with_progress
    from service.cli.session import open_session
    from service.files.exports import check_writable
    from service.flows.jobs import reopen
    from service.flows.score import require_scores, write_scores
    from service.store import jobs
    from service.store.engine import connect

    session = open_session()
    if out is not None:
        check_writable(out)
        require_scores(session.engine, job)
    session.require_worker()
    reopen(session.engine, job)
    run_job_with_progress(session, job, f"Job {job}")
    if out is not None:
        write_scores(session.engine, job, out)
    with connect(session.engine) as connection:
        (summary,) = (_plain(row) for row in jobs.summaries(connection, most=1, job_id=job))
    tell(
        as_json,
        {**summary, **({} if out is None else {"out": str(out)})},
        _headline(summary),
        *([] if out is None else [f"Decisions are in {out}."]),
    )


def _plain(row: Any) -> dict[str, Any]:
    """A row as JSON has it: times as text."""
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row._mapping.items()}


def _headline(summary: dict[str, Any]) -> str:
    by = "" if summary["calibration"] is None else f" by calibration {summary['calibration']}"
    return (
        f"Job {summary['job']}, {summary['kind']} {summary['classifier']}{by}: {summary['state']}, "
        f"{summary['rows_done']:,} of {summary['rows']:,} rows in {summary['chunks']} chunks, "
        f"{summary['chunks_failed']} failed."
    )


def _table(rows: Iterable[dict[str, Any]], columns: tuple[str, ...]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if row[column] is None else str(row[column])) for column in columns))
    return table
