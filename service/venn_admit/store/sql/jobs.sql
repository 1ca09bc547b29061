-- name: add_job
-- Insert a request for work; its rows and chunks follow in the same transaction.
INSERT INTO job (
    classifier_id,
    kind,
    state,
    knn_parameters_id,
    calibration_id,
    weighted,
    require_full_match,
    support_version,
    row_count,
    finished_at,
    requested_by
)
VALUES (
    :classifier_id,
    :kind,
    CASE WHEN :row_count > 0 THEN 'running' ELSE 'done' END,
    :knn_parameters_id,
    :calibration_id,
    :weighted,
    :require_full_match,
    :support_version,
    :row_count,
    CASE WHEN :row_count > 0 THEN NULL ELSE now() END,
    :requested_by
)
RETURNING id;

-- name: cancel_unsent
-- Cancel a job, with the reason, if no message is under way for it and no chunk is being computed; no row otherwise.
UPDATE job
SET
    state = 'cancelled',
    error = :error,
    finished_at = now()
WHERE
    id = :job_id
    AND state = 'running'
    AND NOT EXISTS (
        SELECT
        FROM job_chunk AS chunk
        WHERE
            chunk.job_id = job.id
            AND chunk.state IN ('pending', 'running')
            AND (chunk.state = 'running' OR chunk.sent_at IS NOT NULL)
    )
RETURNING id;

-- name: jobs_in_turn
-- The running jobs that have a chunk to claim, in the order in which one of theirs is to be claimed: what calibrates
-- and fits before scoring, or after it if that is owed a chunk; among these, by turns of their classifiers, of which
-- the one that was served longest ago is next; of one classifier, in order of arrival.
WITH waiting AS (
    SELECT
        job.id,
        job.classifier_id,
        job.kind = 'score' AS is_bulk,
        (
            SELECT max(chunk.claimed_at)
            FROM job_chunk AS chunk
            WHERE
                chunk.job_id = job.id
                AND chunk.claimed_at IS NOT NULL
        ) AS claimed_at
    FROM job
    WHERE job.state = 'running'
),

turn AS (
    SELECT
        waiting.classifier_id,
        waiting.is_bulk,
        -- Jobs that are over count too, or a requester with many small ones would always be next.
        greatest(
            max(waiting.claimed_at),
            (
                SELECT max(ended.finished_at)
                FROM job AS ended
                WHERE
                    ended.classifier_id = waiting.classifier_id
                    AND (ended.kind = 'score') = waiting.is_bulk
                    AND ended.finished_at IS NOT NULL
            )
        ) AS served_at
    FROM waiting
    GROUP BY waiting.classifier_id, waiting.is_bulk
)

SELECT waiting.id
FROM waiting
INNER JOIN turn
    ON
        waiting.classifier_id = turn.classifier_id
        AND waiting.is_bulk = turn.is_bulk
WHERE
    EXISTS (
        SELECT
        FROM job_chunk AS chunk
        WHERE
            chunk.job_id = waiting.id
            AND is_chunk_claimable_v1(chunk.state, chunk.not_before, chunk.lease_until, chunk.claimed_at, chunk.late_at)
    )
ORDER BY
    waiting.is_bulk = :bulk_first DESC,
    turn.served_at ASC NULLS FIRST,
    waiting.classifier_id ASC,
    waiting.id ASC;

-- name: job
-- The request of a job and its state.
SELECT
    id,
    classifier_id,
    kind,
    state,
    knn_parameters_id,
    calibration_id,
    weighted,
    require_full_match,
    row_count,
    error,
    removed_at
FROM job
WHERE id = :job_id;

-- name: settle_job
-- Once no chunk is open, mark the job as done, or as failed with the error of one of its failed chunks. A last chunk
-- is not awaited if another has failed.
WITH settled AS (
    SELECT
        count(*) FILTER (WHERE NOT is_last AND state IN ('pending', 'running')) AS open_count,
        count(*) FILTER (WHERE is_last AND state IN ('pending', 'running')) AS last_count,
        count(*) FILTER (WHERE state = 'failed') AS failed_count,
        min(error) FILTER (WHERE state = 'failed') AS error
    FROM job_chunk
    WHERE job_id = :job_id
)

UPDATE job
SET
    state = CASE WHEN settled.failed_count > 0 THEN 'failed' ELSE 'done' END,
    error = settled.error,
    finished_at = now()
FROM settled
WHERE
    job.id = :job_id
    AND job.state = 'running'
    AND settled.open_count = 0
    AND (settled.last_count = 0 OR settled.failed_count > 0)
RETURNING job.state;

-- name: name_parameters
-- Record the parameters that a fit made.
UPDATE job
SET knn_parameters_id = :knn_parameters_id
WHERE id = :job_id;

-- name: job_progress
-- The progress of a job, and the number of its chunks whose worker renews its claim, and whose worker has not renewed
-- it for a while.
SELECT
    job.state,
    job.error,
    job.row_count,
    coalesce(
        job.rows_done,
        sum(chunk.end_row - chunk.first_row) FILTER (WHERE chunk.state = 'done'),
        0
    ) AS rows_done,
    count(*) FILTER (
        WHERE chunk.state = 'running' AND chunk.lease_until >= now() + make_interval(secs => :least_seconds)
    ) AS chunks_alive,
    count(*) FILTER (
        WHERE chunk.state = 'running' AND chunk.lease_until < now() + make_interval(secs => :least_seconds)
    ) AS chunks_orphaned
FROM job
LEFT JOIN job_chunk AS chunk ON job.id = chunk.job_id
WHERE job.id = :job_id
GROUP BY job.id;

-- name: lock_requester
-- Keep others from recording a job for the same requester until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended(format('venn-admit jobs of %s', CAST(:requested_by AS text)), 0));

-- name: running_jobs_of
-- How many running jobs a requester has.
SELECT count(*) AS running
FROM job
WHERE
    state = 'running'
    AND requested_by = :requested_by;

-- name: announce_change
-- Tell listeners, on commit, that a job has advanced or ended.
SELECT pg_notify('venn_admit_job', CAST(:job_id AS text));

-- name: listen
-- Listen for such jobs from now on, until the session ends.
LISTEN venn_admit_job;

-- name: check_session
-- Check that the session is still open.
SELECT 1 AS lasts;

-- name: announce_worker
-- Take the shared lock that a worker holds as long as it lives.
SELECT pg_advisory_lock_shared(3, 0);

-- name: live_workers
-- The number of workers that hold that lock, in this database.
SELECT count(*) AS workers
FROM pg_locks
WHERE
    locktype = 'advisory'
    AND database = (
        SELECT oid
        FROM pg_database
        WHERE datname = current_database()
    )
    AND classid = 3
    AND objid = 0
    AND objsubid = 2
    AND granted;

-- name: has_worker_here
-- Whether a worker whose connection comes from where this one comes from holds that lock: one on the same machine.
SELECT count(*) > 0 AS has_worker
FROM pg_locks AS held
INNER JOIN pg_stat_activity AS activity ON held.pid = activity.pid
WHERE
    held.locktype = 'advisory'
    AND held.database = activity.datid
    AND held.classid = 3
    AND held.objid = 0
    AND held.objsubid = 2
    AND held.granted
    AND activity.datname = current_database()
    AND activity.client_addr IS NOT DISTINCT FROM inet_client_addr();

-- name: lock_job
-- Lock a job, so that a worker that finishes a chunk settles the job alone and sees every chunk finished before.
SELECT id
FROM job
WHERE id = :job_id
FOR UPDATE;

-- name: jobs
-- The newest jobs, or the newest before a given one, of one classifier or of all, and the progress of each.
SELECT
    job,
    classifier,
    kind,
    state,
    calibration,
    rows,
    chunks,
    error,
    created_at,
    finished_at,
    seconds,
    rows_done,
    chunks_failed,
    most_attempts,
    removed_at
FROM job_summary_v1
WHERE
    (CAST(:job_id AS bigint) IS NULL OR job = :job_id)
    AND (CAST(:classifier AS text) IS NULL OR classifier = :classifier)
    AND (CAST(:before AS bigint) IS NULL OR job < :before)
ORDER BY job DESC
LIMIT :row_limit;

-- name: cancel_job
-- Cancel a job, so that no further chunk of it can be claimed; no row if the job is ended.
UPDATE job
SET
    state = 'cancelled',
    finished_at = now()
WHERE
    id = :job_id
    AND state = 'running'
RETURNING id;

-- name: reopen_job
-- Run a failed or cancelled job again, unless it was removed.
UPDATE job
SET
    state = 'running',
    error = NULL,
    finished_at = NULL
WHERE
    id = :job_id
    AND state IN ('failed', 'cancelled')
    AND removed_at IS NULL
RETURNING id;
