"""The use cases that need a job, from the request to the result, for shells that wait for it.

Each records the job, has the shell see it through, and computes what follows from it. A name is looked up once: all
steps are about the generation of the classifier that it stands for then.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from venn_admit.core.calibrators.usable_bands import UsableShares
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.calibration import fit as fitting
from venn_admit.flows.calibration.calibrate import (
    Calibrated,
    OnStored,
    SettingsOf,
    request_approximations,
)
from venn_admit.flows.calibration.calibrate import calibrate as take_calibration
from venn_admit.flows.calibration.compare import ComparedSettings, request_mc
from venn_admit.flows.calibration.compare import compare as compare_settings_on_mc
from venn_admit.flows.calibration.fit import Fitted, OnEpoch, request_neighbours
from venn_admit.flows.calibration.recalibrate import Step, recalibrate_step, retry_and_list
from venn_admit.flows.calibration.usable_bands import compare_settings
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.ingest import Ingested
from venn_admit.flows.data.ingest import ingest as take_exemplars
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
from venn_admit.flows.removal.forget import Forgotten
from venn_admit.flows.removal.forget import forget as forget_exemplars
from venn_admit.flows.reports import evaluate as evaluation
from venn_admit.flows.reports.evaluate import request_evaluation_of_decisions, request_evaluation_of_source
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work.recalibrations import RecalibrationRequest
from venn_admit.store.workspace import Workspace


class Shell(Protocol):
    """What a use case needs of the shell that runs it: that jobs are seen through, and that somebody may watch."""

    def show(self, what: str, total: int | None = None) -> None:
        """Show what is done from now on, and of how many rows if that is known."""
        ...

    def advance(self, rows: int) -> None:
        """Show that this number of rows more are done."""
        ...

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        """See a recorded job through: have workers compute it and wait, or compute it.

        Args:
            job_id: The job.
            what: What it does, in words.
            then: What is to be done with its result before the request is fulfilled, such as writing a file.

        Raises:
            JobError: The job failed.
        """
        ...


def fit(workspace: Workspace, name: str, *, shell: Shell, on_epoch: OnEpoch) -> Fitted:
    """Find the neighbours that a fit needs, fit the KNN and the localizer on them, and make the result current.

    Args:
        name: The classifier's name.
        shell: Sees the job through.
        on_epoch: Is given the model (`knn`, `localizer`) and each line of its training log.

    Raises:
        NotReadyError: Data are missing.
        JobError: The job failed.
    """
    name = find(workspace.engine, name).address
    shell.run_job(request_neighbours(workspace, name), "Searching neighbours")
    shell.show("Fitting")
    return fitting.fit(workspace, name, on_epoch=on_epoch)


@dataclass(frozen=True, slots=True, eq=False)
class NearlyNothingUsable:
    """A calibration that was not made, because nearly every point would be rejected, with what others would leave."""

    classifier: Classifier
    shares: UsableShares


def calibrate(
    workspace: Workspace,
    name: str,
    settings_of: SettingsOf,
    *,
    shell: Shell,
    reason: str,
    even_if_nearly_nothing_is_usable: bool,
    on_stored: OnStored = lambda *_: None,
) -> Calibrated | NearlyNothingUsable:
    """Bring the approximations of mc and vp up to date, take a snapshot of them, and make it current.

    Args:
        name: The classifier's name.
        settings_of: Gives the settings for the classifier, or raises InvalidInputError.
        shell: Sees the job through.
        reason: Why it is made, as it is kept with the snapshot.
        even_if_nearly_nothing_is_usable: Whether a setting that leaves nearly nothing to admit is stored all the same.
        on_stored: As in `calibration.calibrate`.

    Raises:
        NotReadyError: Data or parameters are missing.
        JobError: The job failed.
    """
    classifier = find(workspace.engine, name)
    name = classifier.address
    if classifier.knn is not None:
        shell.run_job(request_approximations(workspace, name, settings_of), "Approximating")
    if not even_if_nearly_nothing_is_usable:
        shell.show("Counting usable bands")
        compared = compare_settings(workspace, name, settings_of)
        if compared is not None and compared[1].nearly_nothing:
            return NearlyNothingUsable(*compared)
    shell.show("Calibrating")
    return take_calibration(workspace, name, settings_of, reason=reason, on_stored=on_stored)


def compare(workspace: Workspace, name: str, alpha: Decimal, *, shell: Shell) -> ComparedSettings:
    """Bring the approximations of mc up to date, and show what settings of each method admit of it.

    Args:
        name: The classifier's name.
        alpha: The error level.
        shell: Sees the job through, if one is needed.

    Raises:
        InvalidInputError: Alpha is out of range.
        NotReadyError: Data or parameters are missing.
        JobError: The job failed.
    """
    name = find(workspace.engine, name).address
    job_id = request_mc(workspace, name, alpha)
    if job_id is not None:
        shell.run_job(job_id, "Approximating")
    shell.show("Comparing settings")
    return compare_settings_on_mc(workspace, name, alpha)


def recalibrate(
    workspace: Workspace, name: str | None, *, shell: Shell
) -> list[tuple[RecalibrationRequest, Step | None]]:
    """Serve all requests for a recalibration at once, each to its snapshot or to what prevents it.

    Args:
        name: A classifier's name; None: all.
        shell: Sees jobs through.

    Returns:
        The requests with their last steps; None if another process made the snapshot.
    """
    served = []
    for request in retry_and_list(workspace.engine, name):
        shell.show(f"Recalibrating {request.classifier.name}")
        step = _step(workspace, request)
        while step is not None and step.calibrated is None and step.error is None:
            if step.job_id is not None:
                shell.run_job(step.job_id, f"Approximating {request.classifier.name}")
            step = _step(workspace, request)
        served.append((request, step))
    return served


def _step(workspace: Workspace, request: RecalibrationRequest) -> Step | None:
    return recalibrate_step(workspace, request, quiet_seconds=0, wait_seconds=0, wait=True)


def ingest(engine: Engine, name: str, source: ExemplarSource, split: str, *, shell: Shell) -> Ingested:
    """Store exemplars whose labels calibrate; arguments and errors are those of `exemplars.ingest`."""
    shell.show(f"Ingesting {source.name}", source.count_rows())
    return take_exemplars(engine, name, source, split, on_rows=shell.advance)


def forget(
    workspace: Workspace,
    name: str,
    external_ids: Collection[str],
    document_ids: Collection[str],
    *,
    missing_ok: bool,
    dry_run: bool,
    wait: bool,
    shell: Shell,
) -> Forgotten:
    """Remove all that is stored of exemplars, and find the next neighbours of points whose lists named one.

    Arguments and errors are those of `removal.forget`; shell: sees jobs through.

    Raises:
        JobError: A job failed; what was to be removed is removed, and recalibration searches again.
    """
    shell.show("Forgetting")
    done = forget_exemplars(
        workspace, name, external_ids, document_ids, missing_ok=missing_ok, dry_run=dry_run, wait=wait
    )
    for job_id in done.jobs:
        shell.run_job(job_id, "Searching neighbours again")
    return done


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
        name: The classifier's name.
        source: The exemplars.
        weighted: As in `request_score`.
        require_full_match: As in `request_score`.
        calibration_id: As in `request_score`.
        shell: Sees the job through.
        out: The file that the decisions are written to, .parquet or .csv; None: they are only stored.

    Raises:
        InvalidInputError: The source is invalid, or `out` cannot be written.
        NotReadyError: There is no calibration yet.
        JobError: The job failed.
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
        engine: The database.
        job_id: The job.
        out: The file that its decisions are written to, if it scores; None: none.
        shell: Sees the job through.

    Raises:
        InvalidInputError: It has no decisions to write, or `out` cannot be written.
        NotFoundError: There is no such job.
        JobError: The job failed.
    """
    if out is not None:
        require_scores(engine, job_id)
    reopen(engine, job_id)
    shell.run_job(job_id, f"Job {job_id}", None if out is None else partial(write_scores, engine, job_id, out))
    return show_job(engine, job_id)


def evaluate(
    workspace: Workspace,
    name: str,
    source: ExemplarSource | None,
    *,
    title: str | None,
    calibration_id: int | None,
    shell: Shell,
) -> DatasetReport:
    """Decide on labelled exemplars, and compare what each method admits of them and how often it is right.

    Args:
        name: The classifier's name.
        source: The exemplars; None: all labelled ones that the calibration has decided on.
        title: What the report calls them; None: the name of the source, or the calibration.
        calibration_id: The snapshot to use; None: the current one.
        shell: Sees the job through.

    Raises:
        InvalidInputError: There is nothing labelled, or the snapshot was made with all that is.
        NotReadyError: There is no calibration yet.
        JobError: The job failed.
    """
    if source is None:
        request = request_evaluation_of_decisions(workspace, name, calibration_id=calibration_id)
    else:
        shell.show(f"Storing {source.name}", source.count_rows())
        request = request_evaluation_of_source(
            workspace, name, source, calibration_id=calibration_id, on_rows=shell.advance
        )
    shown = title or (f"calibration {request.calibration_id}" if source is None else source.name)
    if request.job_id is not None:
        shell.run_job(request.job_id, f"Scoring {shown}")
    return evaluation.evaluate(workspace, request, shown, on_step=shell.show)
