-- name: add_chunks
-- Cut the rows of a job into runs of at most chunk_rows.
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row)
SELECT
    :job_id,
    first_row / :chunk_rows,
    first_row,
    least(first_row + :chunk_rows, :row_count)
FROM generate_series(0, :row_count - 1, :chunk_rows) AS first_row;

-- name: add_last_chunk
-- Add the chunk that waits until all others of a job are done.
INSERT INTO job_chunk (job_id, ordinal, first_row, end_row, is_last)
SELECT
    :job_id,
    count(*),
    :first_row,
    :end_row,
    TRUE
FROM job_chunk
WHERE job_id = :job_id;

-- name: mark_late
-- Let others take over the chunks that are late, once each: of a job, or of all, of which nothing else is left, those
-- whose claim has lasted several times the median of those that are done. Its holder may still finish it.
WITH late AS (
    SELECT
        chunk.job_id,
        chunk.ordinal
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    WHERE
        job.state = 'running'
        AND (CAST(:job_id AS bigint) IS NULL OR job.id = :job_id)
        AND chunk.state = 'running'
        AND NOT chunk.is_last
        AND chunk.late_at IS NULL
        AND chunk.claimed_at < now() - make_interval(secs => :least_seconds)
        AND NOT EXISTS (
            SELECT
            FROM job_chunk AS other
            WHERE
                other.job_id = chunk.job_id
                AND other.state = 'pending'
                AND NOT other.is_last
        )
        AND now() - chunk.claimed_at > CAST(:times AS double precision) * (
            SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY done.finished_at - done.claimed_at)
            FROM job_chunk AS done
            WHERE
                done.job_id = chunk.job_id
                AND done.state = 'done'
        )
    FOR UPDATE OF chunk SKIP LOCKED
)

UPDATE job_chunk
SET late_at = now()
FROM late
WHERE
    job_chunk.job_id = late.job_id
    AND job_chunk.ordinal = late.ordinal;

-- name: take_unsent
-- Mark as sent the open chunks that need a message, which the caller sends after commit: none was ever sent for them,
-- or their claim has expired or was late since.
WITH due AS (
    SELECT
        chunk.job_id,
        chunk.ordinal
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    WHERE
        job.state = 'running'
        AND (CAST(:job_id AS bigint) IS NULL OR job.id = :job_id)
        AND chunk.state IN ('pending', 'running')
        AND (
            NOT chunk.is_last
            OR NOT EXISTS (
                SELECT
                FROM awaited_chunk_v1 AS awaited
                WHERE awaited.job_id = chunk.job_id
            )
        )
        AND (chunk.not_before IS NULL OR chunk.not_before <= now())
        AND is_chunk_unsent_v2(chunk.sent_at, chunk.lease_until, chunk.claimed_at, chunk.late_at)
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

-- name: overdue_chunks
-- How many chunks could be claimed although a message was sent for each a while ago: some message must wait still.
SELECT count(*) AS chunks
FROM job_chunk AS chunk
INNER JOIN job ON chunk.job_id = job.id
WHERE
    job.state = 'running'
    AND chunk.sent_at < now() - make_interval(secs => :resend_seconds)
    AND is_chunk_claimable_v1(chunk.state, chunk.not_before, chunk.lease_until, chunk.claimed_at, chunk.late_at);

-- name: take_overdue
-- Mark these chunks as sent again.
WITH due AS (
    SELECT
        chunk.job_id,
        chunk.ordinal
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    WHERE
        job.state = 'running'
        AND chunk.sent_at < now() - make_interval(secs => :resend_seconds)
        AND is_chunk_claimable_v1(chunk.state, chunk.not_before, chunk.lease_until, chunk.claimed_at, chunk.late_at)
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

-- name: is_last_chunk_free
-- Whether what is left of a job is a last chunk that no message was sent for.
SELECT count(*) > 0 AS is_free
FROM job_chunk AS last
INNER JOIN job ON last.job_id = job.id
WHERE
    job.id = :job_id
    AND job.state = 'running'
    AND job.kind = 'fit'
    AND last.is_last
    AND last.state = 'pending'
    AND last.sent_at IS NULL
    AND NOT EXISTS (
        SELECT
        FROM awaited_chunk_v1 AS awaited
        WHERE awaited.job_id = last.job_id
    );

-- name: claim_chunk
-- Lease a chunk of a job that is free or late, or the first that is; no row if other workers hold them, or if they are
-- finished or must wait. is_unsent: no message is under way for it. taken_from: the token of a claim that was late.
WITH free AS (
    SELECT
        chunk.job_id,
        chunk.ordinal,
        job.kind,
        classifier.name AS classifier,
        is_chunk_unsent_v2(chunk.sent_at, chunk.lease_until, chunk.claimed_at, chunk.late_at) AS is_unsent,
        CASE WHEN chunk.claimed_at < chunk.late_at THEN chunk.lease_token END AS taken_from
    FROM job_chunk AS chunk
    INNER JOIN job ON chunk.job_id = job.id
    INNER JOIN classifier ON job.classifier_id = classifier.id
    WHERE
        chunk.job_id = :job_id
        AND (CAST(:ordinal AS integer) IS NULL OR chunk.ordinal = :ordinal)
        AND job.state = 'running'
        AND is_chunk_claimable_v1(chunk.state, chunk.not_before, chunk.lease_until, chunk.claimed_at, chunk.late_at)
        AND (
            NOT chunk.is_last
            OR NOT EXISTS (
                SELECT
                FROM awaited_chunk_v1 AS awaited
                WHERE awaited.job_id = chunk.job_id
            )
        )
    ORDER BY chunk.ordinal
    LIMIT 1
    FOR UPDATE OF chunk SKIP LOCKED
)

UPDATE job_chunk
SET
    state = 'running',
    attempts = attempts + 1,
    lease_token = gen_random_uuid(),
    lease_until = now() + make_interval(secs => :lease_seconds),
    not_before = NULL,
    worker = :worker,
    -- Not before it was late, or it would be late still.
    claimed_at = greatest(now(), job_chunk.late_at)
FROM free
WHERE
    job_chunk.job_id = free.job_id
    AND job_chunk.ordinal = free.ordinal
RETURNING
    job_chunk.ordinal,
    job_chunk.lease_token,
    job_chunk.attempts,
    job_chunk.first_row,
    job_chunk.end_row,
    job_chunk.is_last,
    free.kind,
    free.classifier,
    free.is_unsent,
    free.taken_from,
    job_chunk.late_at IS NOT NULL AS was_late;

-- name: end_writer
-- End the session that writes for a claim that was taken over, if there is one: it can no longer finish, and it holds
-- locks that the result which counts must wait for.
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE
    application_name = format('venn-admit chunk %s', CAST(:lease_token AS text))
    AND usename = current_user
    AND datname = current_database();

-- name: chunk_exemplars
-- The exemplars of a chunk, in the order of the request.
SELECT exemplar_id
FROM job_row
WHERE
    job_id = :job_id
    AND row_number >= :first_row
    AND row_number < :end_row
ORDER BY row_number;

-- name: begin_writing
-- Record for which claim this transaction writes, and wait for the results before it as long as that takes. A writer
-- that stands still is ended with its lease, or by the server once it has been idle for as long as a lease.
SELECT
    set_config('application_name', format('venn-admit chunk %s', CAST(:lease_token AS text)), TRUE),
    set_config('lock_timeout', '0', TRUE),
    set_config('idle_in_transaction_session_timeout', format('%ss', CAST(:lease_seconds AS integer)), TRUE);

-- name: finish_chunk
-- Mark a chunk as done; no row if the lease was lost to another worker, whose result then counts, or if the job, which
-- the caller has locked, is not running.
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
    AND EXISTS (
        SELECT
        FROM job
        WHERE
            job.id = :job_id
            AND job.state = 'running'
    )
RETURNING ordinal;

-- name: fail_chunk
-- Record a failed attempt. The chunk is pending again, to wait twice as long after each attempt, or fails for good
-- after the last.
UPDATE job_chunk
SET
    state = CASE WHEN attempts < :max_attempts THEN 'pending' ELSE 'failed' END,
    -- Doubled 30 times at most, after which the limit has long been reached: 2 to the power of the number of attempts
    -- may be too large for an interval.
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

-- name: postpone_chunk
-- Give back a chunk that is as it was, to be computed again after a while; it does not count as an attempt.
UPDATE job_chunk
SET
    state = 'pending',
    attempts = attempts - 1,
    not_before = now() + make_interval(secs => :retry_seconds),
    sent_at = NULL,
    lease_token = NULL,
    lease_until = NULL,
    error = :error
WHERE
    job_id = :job_id
    AND ordinal = :ordinal
    AND lease_token = :lease_token
RETURNING state;

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

-- name: take_leases
-- Take the chunks of a job from the processes that still compute them, so that no result of theirs counts.
UPDATE job_chunk
SET
    state = 'pending',
    lease_token = NULL,
    lease_until = NULL
WHERE
    job_id = :job_id
    AND state = 'running';

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

-- name: reopen_chunks
-- Reset the failed chunks of a job as if they had never been tried, and let the others that are not done be sent again.
UPDATE job_chunk
SET
    state = CASE state WHEN 'failed' THEN 'pending' ELSE state END,
    attempts = CASE state WHEN 'failed' THEN 0 ELSE attempts END,
    sent_at = NULL,
    not_before = NULL,
    late_at = NULL,
    finished_at = NULL
WHERE
    job_id = :job_id
    AND state <> 'done';
