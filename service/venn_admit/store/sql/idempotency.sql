-- name: claim
-- Begin an attempt at a request. No row if it was answered, or if another attempt is running.
INSERT INTO idempotent_request (caller, idempotency_key, route, attempt, leased_until, expires_at)
VALUES (
    :caller,
    :idempotency_key,
    :route,
    :attempt,
    now() + CAST(:lease AS interval),
    now() + CAST(:kept_for AS interval)
)
ON CONFLICT (caller, idempotency_key) DO UPDATE
    SET
        route = excluded.route,
        attempt = excluded.attempt,
        leased_until = excluded.leased_until,
        digest = NULL,
        status = NULL,
        headers = NULL,
        answer = NULL,
        created_at = now(),
        expires_at = excluded.expires_at
    WHERE
    idempotent_request.leased_until <= now()
    AND idempotent_request.attempt NOT IN (
        SELECT extended.attempt
        FROM idempotent_lease AS extended
        WHERE
            extended.caller = :caller
            AND extended.idempotency_key = :idempotency_key
            AND extended.leased_until > now()
    )
    -- Its process died, or its answer is kept no longer.
    AND (idempotent_request.status IS NULL OR idempotent_request.expires_at <= now())
RETURNING attempt;

-- name: known
-- A request that was sent before; its columns of the answer are null while an attempt is running.
SELECT
    digest,
    status,
    headers,
    answer
FROM idempotent_request
WHERE
    caller = :caller
    AND idempotency_key = :idempotency_key;

-- name: some_answers
-- Some answers that are kept, in the order of their keys.
SELECT
    caller,
    idempotency_key,
    route,
    attempt,
    answer
FROM idempotent_request
WHERE
    (caller, idempotency_key) > (:caller, :idempotency_key)
    AND answer IS NOT NULL
ORDER BY
    caller,
    idempotency_key
LIMIT :most;

-- name: extend
-- Let an attempt count as running for longer. The row of the request stays as it is, for `record`.
INSERT INTO idempotent_lease (caller, idempotency_key, attempt, leased_until)
SELECT
    caller,
    idempotency_key,
    attempt,
    now() + CAST(:lease AS interval)
FROM idempotent_request
WHERE
    caller = :caller
    AND idempotency_key = :idempotency_key
    AND attempt = :attempt
    AND status IS NULL
ON CONFLICT (caller, idempotency_key, attempt) DO UPDATE
    SET leased_until = excluded.leased_until;

-- name: record
-- Keep the answer; no row if there is one already, or another attempt has begun since. In a transaction that is
-- REPEATABLE READ, an attempt that has begun since its first statement fails it with SQLSTATE 40001 instead.
UPDATE idempotent_request
SET
    digest = :digest,
    status = :status,
    headers = CAST(:headers AS jsonb),
    answer = :answer,
    leased_until = now(),
    expires_at = now() + CAST(:kept_for AS interval)
WHERE
    caller = :caller
    AND idempotency_key = :idempotency_key
    AND attempt = :attempt
    AND status IS NULL
RETURNING attempt;

-- name: forget
-- Delete the answer that an attempt led to, so that the request can be sent again.
DELETE FROM idempotent_request
WHERE
    caller = :caller
    AND idempotency_key = :idempotency_key
    AND attempt = :attempt;

-- name: release
-- End an attempt that changed nothing, so that the request can be sent again.
DELETE FROM idempotent_request
WHERE
    caller = :caller
    AND idempotency_key = :idempotency_key
    AND attempt = :attempt
    AND status IS NULL;

-- name: sweep
-- Delete some of what is kept no longer. Each claim adds one row at most, so that the table stays small.
DELETE FROM idempotent_request
WHERE (caller, idempotency_key) IN (
    SELECT
        expired.caller,
        expired.idempotency_key
    FROM idempotent_request AS expired
    WHERE
        expired.expires_at <= now()
        AND expired.leased_until <= now()
        AND NOT EXISTS (
            SELECT
            FROM idempotent_lease AS extended
            WHERE
                extended.caller = expired.caller
                AND extended.idempotency_key = expired.idempotency_key
                AND extended.attempt = expired.attempt
                AND extended.leased_until > now()
        )
    ORDER BY expired.expires_at
    LIMIT 10
    FOR UPDATE SKIP LOCKED
);
