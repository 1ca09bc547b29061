"""Deciding on a file: from the request to the decisions, which are stored, and written if that is asked for."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.decisions.score import (
    ScoreCounts,
    ScoreRequest,
    count_scores,
    request_score,
    require_scores,
    write_scores,
)
from venn_admit.flows.jobs.control import reopen
from venn_admit.flows.jobs.listing import ShownJob, show_job
from venn_admit.flows.shell import Shell
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSource:
    """A job that has decided on a source's rows, and what it decided, counted."""

    request: ScoreRequest
    counted: ScoreCounts


def score(
    workspace: Workspace,
    name: str,
    source: ExemplarSource,
    *,
    weighted: bool | None,
    require_full_match: bool,
    calibration_id: int | None,
    shell: Shell,
    out: Path | None = None,
) -> ScoredSource:
    """Store exemplars and decide on each.

    Args:
        out: The file that the decisions are written to, .parquet or .csv; None: they are only stored.

    Raises:
        InvalidInputError: The source is invalid, or `out` cannot be written.
    """
    shell.show(f"Storing {source.name}", source.count_rows())
    request = request_score(
        workspace,
        name,
        source,
        weighted=weighted,
        require_full_match=require_full_match,
        calibration_id=calibration_id,
        on_rows=shell.advance,
    )
    what = f"Scoring {source.name}" + ("" if request.weighted else ", plain")
    shell.run_job(
        request.job_id, what, None if out is None else partial(write_scores, workspace.engine, request.job_id, out)
    )
    return ScoredSource(request, count_scores(workspace.engine, request.job_id))


def resume(engine: Engine, job_id: int, *, out: Path | None, shell: Shell) -> ShownJob:
    """Finish a job that was interrupted, failed or cancelled.

    Args:
        out: The file that its decisions are written to, if it scores; None: none.

    Raises:
        InvalidInputError: It has no decisions to write, or `out` cannot be written.
    """
    if out is not None:
        require_scores(engine, job_id)
    reopen(engine, job_id)
    shell.run_job(job_id, f"Job {job_id}", None if out is None else partial(write_scores, engine, job_id, out))
    return show_job(engine, job_id)
