-- name: request_recalibration
-- Request a recalibration of every calibrator of a classifier that has a snapshot and is not retired. A request that is
-- waiting already is not duplicated.
INSERT INTO recalibration_request AS request (calibrator_id, first_requested_at, last_requested_at, reason)
SELECT
    calibrator.id,
    first_requested_at,
    first_requested_at AS last_requested_at,
    :reason
FROM calibrator
CROSS JOIN clock_timestamp() AS first_requested_at
WHERE
    calibrator.classifier_id = :classifier_id
    AND (CAST(:calibrator_id AS integer) IS NULL OR calibrator.id = :calibrator_id)
    AND (NOT :only_standing OR calibrator.standing)
    AND calibrator.retired_at IS NULL
    AND EXISTS (
        SELECT 1
        FROM calibration
        WHERE
            calibration.calibrator_id = calibrator.id
            -- A chain is advanced before it certifies anything, and so is put in use.
            AND (
                calibration.state = 'current'
                OR calibrator.standing
            )
    )
ORDER BY calibrator.id
ON CONFLICT (calibrator_id) DO UPDATE
    SET
        -- It is later than any before, whatever the clock says, because it tells requests apart.
        last_requested_at = greatest(clock_timestamp(), request.last_requested_at + interval '1 microsecond'),
        reason
        = CASE
            WHEN excluded.reason = ANY(string_to_array(request.reason, ', ')) THEN request.reason
            ELSE request.reason || ', ' || excluded.reason
        END,
        job_id = CASE WHEN request.error IS NULL THEN request.job_id END,
        error = NULL
RETURNING calibrator_id;

-- name: due_requests
-- The requests that are due: without another request for a while, waiting for long, or with a job to follow.
SELECT
    request.calibrator_id,
    request.last_requested_at,
    request.reason,
    job.id AS job_id,
    job.state AS job_state,
    job.error AS job_error,
    calibrator.classifier_id,
    to_jsonb(calibrator)::text AS settings
FROM recalibration_request AS request
INNER JOIN calibrator ON request.calibrator_id = calibrator.id
INNER JOIN classifier ON calibrator.classifier_id = classifier.id
LEFT JOIN job
    ON
        request.job_id = job.id
        -- What made a job fail may be what was requested after it: another is tried.
        AND NOT (job.state IN ('failed', 'cancelled') AND request.last_requested_at > job.created_at)
WHERE
    request.error IS NULL
    AND classifier.deleting_since IS NULL
    -- A request that arrived while the setting was being retired may remain.
    AND calibrator.retired_at IS NULL
    AND (
        job.id IS NOT NULL
        OR request.last_requested_at <= now() - make_interval(secs => :quiet_seconds)
        OR request.first_requested_at <= now() - make_interval(secs => :wait_seconds)
    )
    AND (CAST(:classifier_id AS integer) IS NULL OR calibrator.classifier_id = :classifier_id)
    AND (CAST(:calibrator_id AS integer) IS NULL OR calibrator.id = :calibrator_id)
ORDER BY request.first_requested_at, request.calibrator_id;

-- name: requested_at
-- The time of the last request for recalibration under a setting; no row if there is none.
SELECT request.last_requested_at
FROM recalibration_request AS request
INNER JOIN calibrator ON request.calibrator_id = calibrator.id
WHERE
    calibrator.classifier_id = :classifier_id
    AND calibrator.settings_digest = :settings_digest;

-- name: await_job
-- Set the job of a request, or remove it.
UPDATE recalibration_request
SET job_id = :job_id
WHERE calibrator_id = :calibrator_id;

-- name: delete_request
-- Delete a request that is served, unless another came since.
DELETE FROM recalibration_request
WHERE
    calibrator_id = :calibrator_id
    AND last_requested_at = :requested_at;

-- name: renew_request
-- Turn what was requested since then into a request of its own.
UPDATE recalibration_request
SET
    first_requested_at = last_requested_at,
    job_id = NULL
WHERE calibrator_id = :calibrator_id;

-- name: fail_request
-- Record why a request cannot be served, unless another came since, which may make a difference.
UPDATE recalibration_request
SET error = :error
WHERE
    calibrator_id = :calibrator_id
    AND last_requested_at = :requested_at;

-- name: retry_requests
-- Let the requests that could not be served, or whose job did not succeed, be tried again.
UPDATE recalibration_request AS request
SET
    error = NULL,
    job_id = NULL
FROM calibrator
WHERE
    request.calibrator_id = calibrator.id
    AND (CAST(:classifier_id AS integer) IS NULL OR calibrator.classifier_id = :classifier_id)
    AND (
        request.error IS NOT NULL
        OR EXISTS (
            SELECT 1
            FROM job
            WHERE
                job.id = request.job_id
                AND job.state IN ('failed', 'cancelled')
        )
    );
