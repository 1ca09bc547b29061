"""Verbs on jobs: list, show, cancel, resume, delete, prune."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from venn_admit.cli.opening import open_session
from venn_admit.cli.options import Json
from venn_admit.cli.output import LARGEST_LIMIT, print_result, progress
from venn_admit.report.wording import counted
from venn_admit_client.members import as_json as json_of

JobId = Annotated[int, typer.Argument(help="Id of a job, from `venn-admit jobs list`.")]


def list_jobs(
    name: Annotated[str | None, typer.Argument(help="A classifier; default: all.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LARGEST_LIMIT, help="How many jobs to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List jobs with their state, progress and times, the newest first."""
    from venn_admit.cli.tables.rows import jobs_table
    from venn_admit.flows.jobs.listing import list_jobs as flow
    from venn_admit.results import rows_json

    rows = flow(open_session().engine, name, limit=limit)
    print_result(as_json, {"jobs": rows_json(rows)}, jobs_table(rows) if rows else "There are no jobs yet.")


def show(
    job: JobId,
    chunks: Annotated[bool, typer.Option("--chunks", help="List every chunk.")] = False,
    as_json: Json = False,
) -> None:
    """Show one job: its progress, and the number, attempts and first error of the chunks in each state."""
    from venn_admit.cli.tables.rows import chunks_table, headline, times
    from venn_admit.flows.jobs.listing import show_job
    from venn_admit.results import job_json

    found = show_job(open_session().engine, job, with_chunks=chunks or as_json)
    summary = found.summary
    parts: list[RenderableType] = [
        headline(summary),
        times(summary),
        *([f"Error: {summary.error}"] if summary.error else []),
    ]
    if found.states:
        parts.append(chunks_table(found.states, ("state", "chunks", "rows", "attempts")))
    if found.chunks:
        parts.append(chunks_table(found.chunks, ("chunk", "first_row", "end_row", "state", "attempts", "worker")))
    print_result(as_json, job_json(found), *parts)


def cancel(job: JobId, as_json: Json = False) -> None:
    """Cancel a running job; what is done stays, and chunks that are being computed do not count."""
    from venn_admit.flows.jobs.control import cancel as flow

    flow(open_session().engine, job)
    print_result(as_json, {"job": job, "state": "cancelled"}, f"Job {job} is cancelled.")


def resume(
    job: JobId,
    out: Annotated[
        Path | None, typer.Option(help="Where the decisions of a score job go, .parquet or .csv, as in `score --out`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Finish a job that was interrupted, failed or cancelled; what is done already is not computed again."""
    from venn_admit.cli.tables.rows import headline
    from venn_admit.cli.waiting import Waiting
    from venn_admit.files.output.tables import check_table_output
    from venn_admit.flows.decisions.score_file import resume as flow

    if out is not None:
        check_table_output(out)
    session = open_session()
    session.require_worker()
    with Waiting(session, out) as shell:
        summary = flow(session.engine, job, out=out, shell=shell).summary
    print_result(
        as_json,
        {**json_of(summary._mapping), **({} if out is None else {"out": str(out)})},
        headline(summary),
        *([] if out is None else [f"Decisions are in {out}."]),
    )


def delete(job: JobId, as_json: Json = False) -> None:
    """Delete the rows, chunks and decisions of a job that is over, except decisions that another job asks for.

    Decisions on points that ever had a random label or one of a review, or were drawn to be audited, stay, because
    monitors and measured accuracies rest on them. The job stays in the list, which says that it was removed.
    """
    from venn_admit.flows.jobs.listing import show_job
    from venn_admit.flows.jobs.removal import delete_job, empty_job, vacuum
    from venn_admit.store.access.audit import Origin

    engine = open_session().engine
    delete_job(engine, job, origin=Origin.COMMAND_LINE)
    with progress(f"Removing job {job}", show_job(engine, job).summary.rows) as advance:
        removed = empty_job(engine, job, on_rows=advance)
    vacuum(engine)
    print_result(
        as_json,
        {"job": job, "rows": removed.rows, "decisions": removed.decisions},
        f"Job {job} is removed: {counted(removed.rows, 'row')} and {counted(removed.decisions, 'decision')}.",
    )


def prune(
    older_than: Annotated[
        str | None, typer.Option(help="Days since a job ended, such as 90d; default: VENN_ADMIT_KEEP_DECISIONS.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Delete the rows, chunks and decisions of all jobs that ended long ago, as `jobs delete` does of one.

    What an interrupted command left is deleted first. Workers and other commands go on meanwhile.
    """
    from venn_admit.errors import InvalidInputError
    from venn_admit.flows.jobs.removal import old_jobs, vacuum
    from venn_admit.flows.jobs.removal import prune as flow
    from venn_admit.runtime.settings import days
    from venn_admit.store.access.audit import Origin

    session = open_session()
    kept_for = session.settings.decisions_kept_for if older_than is None else days(older_than)
    if kept_for is None:
        raise InvalidInputError(
            "expected for how long jobs are kept, got nothing; give --older-than, such as 90d, or set "
            "VENN_ADMIT_KEEP_DECISIONS"
        )
    ended_before, old = old_jobs(session.engine, kept_for)
    limit = f"that ended before {ended_before:%Y-%m-%d %H:%M %Z}"
    payload = {"ended_before": ended_before.isoformat(), "jobs": old.jobs, "rows": old.rows}
    if dry_run:
        print_result(
            as_json, payload, f"To be removed: {counted(old.jobs, 'job')}, of {counted(old.rows, 'row')}, {limit}."
        )
        return
    with progress(f"Removing {counted(old.jobs, 'job')}", old.rows) as advance:
        removed = flow(session.engine, kept_for, origin=Origin.COMMAND_LINE, on_rows=advance)
    if removed.rows:
        vacuum(session.engine)
    print_result(
        as_json,
        {**payload, "jobs": removed.jobs, "rows": removed.rows, "decisions": removed.decisions},
        f"Removed {counted(removed.jobs, 'job')} {limit}: {counted(removed.rows, 'row')} and "
        f"{counted(removed.decisions, 'decision')}.",
    )
