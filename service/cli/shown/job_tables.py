"""Jobs and their chunks, as lines and tables."""

from collections.abc import Sequence

from rich.table import Table

from venn_admit.service.cli.shown.rows import cell, duration, table
from venn_admit.service.flows.jobs.listing import ChunkRow, JobRow


def headline(summary: JobRow) -> str:
    by = "" if summary.calibration is None else f" by calibration {summary.calibration}"
    return (
        f"Job {summary.job}, {summary.kind} {summary.classifier}{by}: {summary.state}, "
        f"{summary.rows_done:,} of {summary.rows:,} rows in {summary.chunks:,} chunks, "
        f"{summary.chunks_failed:,} failed."
    )


def times(summary: JobRow) -> str:
    asked = f"Asked for {cell(summary.created_at)}"
    if summary.finished_at is None:
        return f"{asked}; not finished."
    return f"{asked}; finished {cell(summary.finished_at)}, after {duration(summary.seconds)}."


def jobs_table(jobs: Sequence[JobRow]) -> Table:
    """Return a table with a column of errors if there are any; `jobs show` says which chunks failed, and how often."""
    columns = ["job", "classifier", "kind", "state", "rows done", "rows", "asked for", "finished", "took"]
    rows = [
        [
            str(job.job),
            job.classifier,
            job.kind,
            job.state,
            job.rows_done,
            job.rows,
            job.created_at,
            job.finished_at,
            duration(job.seconds),
            job.error,
        ]
        for job in jobs
    ]
    if any(job.error for job in jobs):
        return table([*columns, "error"], rows)
    return table(columns, [row[:-1] for row in rows])


def chunks_table(chunks: Sequence[ChunkRow], names: tuple[str, ...]) -> Table:
    """Return a table of these columns, and of waiting times and errors if there are any."""
    shown = [*names, *(name for name in ("not_before", "error") if any(getattr(chunk, name) for chunk in chunks))]
    rows = [tuple(getattr(chunk, name) for name in shown) for chunk in chunks]
    return table([name.replace("_", " ") for name in shown], rows)
