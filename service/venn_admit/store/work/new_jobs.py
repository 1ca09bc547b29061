"""The recording of jobs."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.types import IntArray
from venn_admit.store.database.binary_copy import INT4, INT8, copy_in
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import support
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class NewJob:
    """A job to be recorded.

    exemplar_ids: its rows, in order. completes_neighbours: whether these are all whose neighbours are out of date, so
    that none are once it is done, as of the support version that its classifier was read with. last_ids: further rows,
    for a chunk that waits until all others are done; None: there is no such chunk.
    """

    kind: str
    exemplar_ids: IntArray
    knn_parameters_id: int | None
    completes_neighbours: bool = False
    calibration_id: int | None = None
    weighted: bool | None = None
    require_full_match: bool | None = None
    last_ids: IntArray | None = None


def add_job(
    connection: Connection, classifier: Classifier, job: NewJob, *, chunk_rows: int, requested_by: str | None = None
) -> int:
    """Record a job with its rows and chunks, and return its key; a job without rows is done at once.

    requested_by: the key or token, if that was over HTTP.
    """
    before_last = len(job.exemplar_ids)
    rows = job.exemplar_ids if job.last_ids is None else np.concatenate([job.exemplar_ids, job.last_ids])
    n = len(rows)
    job_id: int = execute(
        connection,
        "jobs.add_job",
        classifier_id=classifier.id,
        kind=job.kind,
        knn_parameters_id=job.knn_parameters_id,
        calibration_id=job.calibration_id,
        weighted=job.weighted,
        require_full_match=job.require_full_match,
        support_version=classifier.support_version if job.completes_neighbours else None,
        row_count=n,
        requested_by=requested_by,
    ).scalar_one()
    if n:
        columns = {
            "job_id": (INT8, np.full(n, job_id)),
            "row_number": (INT4, np.arange(n)),
            "exemplar_id": (INT8, rows),
        }
        copy_in(driver_cursor(connection), "job_row", columns)
        execute(connection, "job_chunks.add_chunks", job_id=job_id, chunk_rows=chunk_rows, row_count=before_last)
    if job.last_ids is not None:
        execute(connection, "job_chunks.add_last_chunk", job_id=job_id, first_row=before_last, end_row=n)
    if not before_last:
        support.complete_neighbours(connection, job_id)
    return job_id
