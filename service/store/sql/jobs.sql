-- name: add_job
-- A request for work; its rows and chunks follow in the same transaction.
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
-- Cut a job's rows into runs of at most chunk_rows.
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row)
SELECT
    :job_id,
    first_row / :chunk_rows,
    first_row,
    least(first_row + :chunk_rows, :row_count)
FROM generate_series(0, :row_count - 1, :chunk_rows) AS first_row;

-- name: take_unsent
-- Open chunks of which no message is under way: never sent, or their claim ran out since, or sent long ago while
-- nothing moved or a later message arrived. They are marked as sent; the caller sends the messages after commit.
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
            -- No message was sent since its claim ran out.
            OR (chunk.lease_until < now() AND chunk.sent_at <= chunk.lease_until)
            OR (
                chunk.sent_at < now() - make_interval(secs => :resend_seconds)
                AND (
                    chunk.lease_until < now()
                    -- While others come and go, a chunk waits in the queue, which is in the order of sending.
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
-- The messages for these chunks could not be sent.
UPDATE job_chunk
SET sent_at = NULL
FROM unnest(CAST(:job_ids AS bigint[]), CAST(:ordinals AS integer[])) AS unsent (job_id, ordinal)
WHERE
    job_chunk.job_id = unsent.job_id
    AND job_chunk.ordinal = unsent.ordinal
    AND job_chunk.state = 'pending';

-- name: cancel_unsent
-- A job of which no message is under way and no chunk is being computed ends with the reason; no row for any other.
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
-- The worker lives: its claim lasts longer. No row where the claim is another's by now, or the chunk is done.
UPDATE job_chunk
SET lease_until = now() + make_interval(secs => :lease_seconds)
WHERE
    job_id = :job_id
    AND ordinal = :ordinal
    AND lease_token = :lease_token
RETURNING ordinal;

-- name: release_chunks
-- What a process claimed that is dead: the claims end now.
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
-- The session says whose result this transaction writes, and waits for the results before it as long as it takes: a
-- writer that stands still is ended with its lease, or by the server once it was idle for as long as a lease.
SELECT
    set_config('application_name', format('venn-admit chunk %s', CAST(:lease_token AS text)), TRUE),
    set_config('lock_timeout', '0', TRUE),
    set_config('idle_in_transaction_session_timeout', format('%ss', CAST(:lease_seconds AS integer)), TRUE);

-- name: end_lost_writers
-- Sessions that write for a claim which ran out: they can no longer finish, and hold locks that others wait for.
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
-- Lease a chunk that is free; no row where another worker holds it, it is finished, or it is to wait.
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
-- What a job asks for and how it stands.
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
-- Mark a chunk done; no row where the lease was lost to another worker, whose result then counts.
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
-- An attempt went wrong: back to pending, to wait twice as long after each, or failed for good after the last.
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
-- Once no chunk is open, the job is done, or failed with the first chunk's error.
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
-- How far a job is, and how many of its chunks are computed by a worker that renews its claim, or has not for a while.
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

-- name: announce_worker
-- A worker holds this shared lock as long as it lives.
SELECT pg_advisory_lock_shared(3, 0);

-- name: live_workers
-- How many workers hold it, in this database.
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

-- name: lock_job
-- Whoever finishes a chunk settles its job alone, and so sees every chunk finished before.
SELECT id
FROM job
WHERE id = :job_id
FOR UPDATE;

-- name: database_identity
-- Of all servers and their databases, this one; a copy has another.
SELECT format('%s-%s', control.system_identifier, pg_database.oid) AS identity
FROM pg_control_system() AS control, pg_database
WHERE pg_database.datname = current_database();

-- name: jobs
-- The newest jobs, of one classifier or of all, and how far each is.
SELECT
    job.id AS job,
    classifier.name AS classifier,
    job.kind,
    job.state,
    job.calibration_id AS calibration,
    job.row_count AS rows,
    count(chunk.ordinal) AS chunks,
    job.error,
    job.created_at,
    job.finished_at,
    extract(EPOCH FROM job.finished_at - job.created_at)::double precision AS seconds,
    -- Of bigint, which sum() would leave.
    coalesce(sum(chunk.end_row - chunk.first_row) FILTER (WHERE chunk.state = 'done'), 0)::bigint AS rows_done,
    count(chunk.ordinal) FILTER (WHERE chunk.state = 'failed') AS chunks_failed,
    coalesce(max(chunk.attempts), 0) AS most_attempts
FROM job
INNER JOIN classifier ON job.classifier_id = classifier.id
LEFT JOIN job_chunk AS chunk ON job.id = chunk.job_id
WHERE
    (CAST(:job_id AS bigint) IS NULL OR job.id = :job_id)
    AND (CAST(:classifier_id AS integer) IS NULL OR job.classifier_id = :classifier_id)
GROUP BY job.id, classifier.name
ORDER BY job.id DESC
LIMIT :row_limit;

-- name: chunk_states
-- The chunks of a job summed up by state; the error is that of the first chunk which has one.
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
-- The chunks of a job: who has or had each, how often, and what went wrong last.
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
-- No further chunk of it can be claimed; no row where it is over.
UPDATE job
SET
    state = 'cancelled',
    finished_at = now()
WHERE
    id = :job_id
    AND state = 'running'
RETURNING id;

-- name: reopen_job
-- A failed or cancelled job runs again.
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
-- With its failed chunks as if they had never been tried, and the others that are not done to be sent anew.
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
