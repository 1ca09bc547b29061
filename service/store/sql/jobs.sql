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
    finished_at
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
    CASE WHEN :row_count > 0 THEN NULL ELSE now() END
)
RETURNING id;

-- name: add_chunks
-- Cut the rows of a job into runs of at most chunk_rows.
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row)
SELECT
    :job_id,
    first_row / :chunk_rows,
    first_row,
    least(first_row + :chunk_rows, :row_count)
FROM generate_series(0, :row_count - 1, :chunk_rows) AS first_row;

-- name: take_unsent
-- Mark as sent the open chunks that no message is under way for, which the caller sends after commit. No message was
-- ever sent for them, or their claim has expired since, or the message was sent long ago while nothing moved or a later
-- message arrived.
WITH claimed AS (
    SELECT
        max(chunk.sent_at) AS newest_sent_at,
        coalesce(
            bool_or(
                chunk.finished_at > now() - make_interval(secs => :resend_seconds)
                OR chunk.lease_until > now()
            ),
            FALSE
        ) AS is_moving
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    WHERE
        job.state = 'running'
        AND chunk.state IN ('running', 'done')
),

due AS (
    SELECT
        chunk.job_id,
        chunk.ordinal
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    CROSS JOIN claimed
    WHERE
        job.state = 'running'
        AND (CAST(:job_id AS bigint) IS NULL OR job.id = :job_id)
        AND chunk.state IN ('pending', 'running')
        AND (chunk.not_before IS NULL OR chunk.not_before <= now())
        AND (
            chunk.sent_at IS NULL
            -- No message was sent since the claim expired.
            OR (chunk.lease_until < now() AND chunk.sent_at <= chunk.lease_until)
            OR (
                chunk.sent_at < now() - make_interval(secs => :resend_seconds)
                AND (
                    chunk.lease_until < now()
                    -- As long as other chunks move, this one waits in the queue, which is in the order of sending.
                    OR (
                        chunk.state = 'pending'
                        AND (NOT claimed.is_moving OR chunk.sent_at < claimed.newest_sent_at)
                    )
                )
            )
        )
    ORDER BY chunk.job_id, chunk.ordinal
    FOR UPDATE OF chunk SKIP LOCKED
)

UPDATE job_chunk
SET sent_at = now()
FROM due
WHERE
    job_chunk.job_id = due.job_id
    AND job_chunk.ordinal = due.ordinal
RETURNING job_chunk.job_id, job_chunk.ordinal;

-- name: unsend
-- Undo the mark of chunks whose messages could not be sent.
UPDATE job_chunk
SET sent_at = NULL
FROM unnest(CAST(:job_ids AS bigint[]), CAST(:ordinals AS integer[])) AS unsent (job_id, ordinal)
WHERE
    job_chunk.job_id = unsent.job_id
    AND job_chunk.ordinal = unsent.ordinal
    AND job_chunk.state = 'pending';

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

-- name: renew_lease
-- Extend the claim of a live worker; no row if another worker holds the claim by now, or the chunk is done.
UPDATE job_chunk
SET lease_until = now() + make_interval(secs => :lease_seconds)
WHERE
    job_id = :job_id
    AND ordinal = :ordinal
    AND lease_token = :lease_token
RETURNING ordinal;

-- name: release_chunks
-- End the claims of a process that is dead.
UPDATE job_chunk
SET lease_until = now()
FROM job
WHERE
    job_chunk.job_id = job.id
    AND job.state = 'running'
    AND job_chunk.state = 'running'
    AND job_chunk.worker = :worker
    AND job_chunk.lease_until > now();

-- name: begin_writing
-- Record for which claim this transaction writes, and wait for the results before it as long as that takes. A writer
-- that stands still is ended with its lease, or by the server once it has been idle for as long as a lease.
SELECT
    set_config('application_name', format('venn-admit chunk %s', CAST(:lease_token AS text)), TRUE),
    set_config('lock_timeout', '0', TRUE),
    set_config('idle_in_transaction_session_timeout', format('%ss', CAST(:lease_seconds AS integer)), TRUE);

-- name: end_lost_writers
-- End the sessions that write for a claim that has expired. They can no longer finish, and they hold locks that others
-- wait for.
SELECT pg_terminate_backend(activity.pid)
FROM job_chunk AS chunk
INNER JOIN job ON chunk.job_id = job.id
INNER JOIN pg_stat_activity AS activity ON activity.application_name = format('venn-admit chunk %s', chunk.lease_token)
WHERE
    job.state = 'running'
    AND chunk.state = 'running'
    AND chunk.lease_until < now()
    AND activity.usename = current_user
    AND activity.datname = current_database();

-- name: claim_chunk
-- Lease a chunk that is free; no row if another worker holds it, it is finished, or it must wait.
WITH free AS (
    SELECT
        chunk.job_id,
        chunk.ordinal,
        classifier.name AS classifier
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    INNER JOIN classifier ON job.classifier_id = classifier.id
    WHERE
        chunk.job_id = :job_id
        AND chunk.ordinal = :ordinal
        AND job.state = 'running'
        AND (chunk.not_before IS NULL OR chunk.not_before <= now())
        AND (
            chunk.state = 'pending'
            OR (chunk.state = 'running' AND chunk.lease_until < now())
        )
    FOR UPDATE OF chunk SKIP LOCKED
)

UPDATE job_chunk
SET
    state = 'running',
    attempts = attempts + 1,
    lease_token = gen_random_uuid(),
    lease_until = now() + make_interval(secs => :lease_seconds),
    not_before = NULL,
    worker = :worker
FROM free
WHERE
    job_chunk.job_id = free.job_id
    AND job_chunk.ordinal = free.ordinal
RETURNING job_chunk.lease_token, job_chunk.attempts, job_chunk.first_row, job_chunk.end_row, free.classifier;

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
    error
FROM job
WHERE id = :job_id;

-- name: chunk_exemplars
-- The exemplars of a chunk, in the order of the request.
SELECT exemplar_id
FROM job_row
WHERE
    job_id = :job_id
    AND row_number >= :first_row
    AND row_number < :end_row
ORDER BY row_number;

-- name: finish_chunk
-- Mark a chunk as done; no row if the lease was lost to another worker, whose result then counts.
UPDATE job_chunk
SET
    state = 'done',
    lease_token = NULL,
    lease_until = NULL,
    error = NULL,
    finished_at = now()
WHERE
    job_id = :job_id
    AND ordinal = :ordinal
    AND lease_token = :lease_token
RETURNING ordinal;

-- name: fail_chunk
-- Record a failed attempt. The chunk is pending again, to wait twice as long after each attempt, or fails for good
-- after the last.
UPDATE job_chunk
SET
    state = CASE WHEN attempts < :max_attempts THEN 'pending' ELSE 'failed' END,
    not_before
    = CASE
        WHEN attempts < :max_attempts
            THEN now() + make_interval(secs => least(:retry_seconds * 2.0 ^ least(attempts - 1, 30), :most_seconds))
    END,
    sent_at = NULL,
    lease_token = NULL,
    lease_until = NULL,
    error = :error,
    finished_at = CASE WHEN attempts < :max_attempts THEN NULL ELSE now() END
WHERE
    job_id = :job_id
    AND ordinal = :ordinal
    AND lease_token = :lease_token
RETURNING state;

-- name: settle_job
-- Once no chunk is open, mark the job as done, or as failed with the error of one of its failed chunks.
WITH settled AS (
    SELECT
        count(*) FILTER (WHERE state IN ('pending', 'running')) AS open_count,
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
RETURNING job.state;

-- name: job_progress
-- The progress of a job, and the number of its chunks whose worker renews its claim, and whose worker has not renewed
-- it for a while.
SELECT
    job.state,
    job.error,
    job.row_count,
    coalesce(sum(chunk.end_row - chunk.first_row) FILTER (WHERE chunk.state = 'done'), 0) AS rows_done,
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

-- name: running_jobs
-- Those of some jobs that are running.
SELECT id
FROM job
WHERE
    id = any(CAST(:job_ids AS bigint[]))
    AND state = 'running';

-- name: announce_change
-- Tell whoever listens, on commit, that a job has advanced or ended.
SELECT pg_notify('venn_admit_job', CAST(:job_id AS text));

-- name: listen
-- Be told of such jobs from now on, as long as the session lasts.
LISTEN venn_admit_job;

-- name: check_session
-- See that the session lasts.
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

-- name: database_identity
-- Identify this database among all databases of all servers; a copy has another identity.
SELECT format('%s-%s', control.system_identifier, pg_database.oid) AS identity
FROM pg_control_system() AS control, pg_database
WHERE pg_database.datname = current_database();

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
    most_attempts
FROM job_summary_v1
WHERE
    (CAST(:job_id AS bigint) IS NULL OR job = :job_id)
    AND (CAST(:classifier AS text) IS NULL OR classifier = :classifier)
    AND (CAST(:before AS bigint) IS NULL OR job < :before)
ORDER BY job DESC
LIMIT :row_limit;

-- name: chunk_states
-- The number of chunks of a job by state, with the error of the first chunk that has one.
SELECT
    state,
    count(*) AS chunks,
    sum(end_row - first_row)::bigint AS rows,
    sum(attempts) AS attempts,
    min(not_before) AS not_before,
    (array_agg(error ORDER BY ordinal) FILTER (WHERE error IS NOT NULL))[1] AS error
FROM job_chunk
WHERE job_id = :job_id
GROUP BY state
ORDER BY array_position('{done,running,pending,failed}'::text[], state);

-- name: job_chunks
-- The chunks of a job: the worker that has or had each, the number of attempts, and the last error.
SELECT
    ordinal AS chunk,
    first_row,
    end_row,
    state,
    attempts,
    worker,
    lease_until,
    not_before,
    error,
    finished_at
FROM job_chunk
WHERE job_id = :job_id
ORDER BY ordinal;

-- name: cancel_job
-- Cancel a job, so that no further chunk of it can be claimed; no row if the job is over.
UPDATE job
SET
    state = 'cancelled',
    finished_at = now()
WHERE
    id = :job_id
    AND state = 'running'
RETURNING id;

-- name: reopen_job
-- Run a failed or cancelled job again.
UPDATE job
SET
    state = 'running',
    error = NULL,
    finished_at = NULL
WHERE
    id = :job_id
    AND state IN ('failed', 'cancelled')
RETURNING id;

-- name: reopen_chunks
-- Reset the failed chunks of a job as if they had never been tried, and let the others that are not done be sent again.
UPDATE job_chunk
SET
    state = CASE state WHEN 'failed' THEN 'pending' ELSE state END,
    attempts = CASE state WHEN 'failed' THEN 0 ELSE attempts END,
    sent_at = NULL,
    not_before = NULL,
    finished_at = NULL
WHERE
    job_id = :job_id
    AND state <> 'done';
