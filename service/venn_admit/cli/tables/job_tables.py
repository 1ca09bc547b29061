"""Jobs and their chunks, as lines and tables."""

from collections.abc import Sequence

from rich.console import RenderableType

from venn_admit.cli.tables.rows import cell, duration, table
from venn_admit.flows.jobs.listing import ChunkRow, JobRow


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
    ended = f"{asked}; finished {cell(summary.finished_at)}, after {duration(summary.seconds)}."
    if summary.removed_at is None:
        return ended
    return f"{ended} Its rows, chunks and decisions were removed {cell(summary.removed_at)}."


def jobs_table(jobs: Sequence[JobRow]) -> RenderableType:
    """Return a table, with columns of errors and of removals if there are any; `jobs show` says which chunks failed."""
    columns = ["job", "classifier", "kind", "state", "rows done", "rows", "asked for", "finished", "took"]
    further = [name for name in ("removed_at", "error") if any(getattr(job, name) for job in jobs)]
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
            *(getattr(job, name) for name in further),
        ]
        for job in jobs
    ]
    return table([*columns, *({"removed_at": "removed"}.get(name, name) for name in further)], rows)


def chunks_table(chunks: Sequence[ChunkRow], names: tuple[str, ...]) -> RenderableType:
    """Return a table of these columns, and of waiting times and errors if there are any."""
    shown = [*names, *(name for name in ("not_before", "error") if any(getattr(chunk, name) for chunk in chunks))]
    rows = [tuple(getattr(chunk, name) for name in shown) for chunk in chunks]
    return table([name.replace("_", " ") for name in shown], rows)
