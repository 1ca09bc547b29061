-- name: calibrators
-- The settings of a classifier, the one in use first, each with its current snapshot and with the recalibration that it
-- is waiting for. A setting that was never put in use has its newest snapshot.
SELECT
    calibrator.id,
    to_jsonb(calibrator)::text AS settings,
    calibrator.retired_at,
    calibration.id AS calibration_id,
    calibration.created_at AS calibrated_at,
    calibration.mc_count,
    calibration.vp_count,
    request.reason AS due_for,
    request.error AS due_error,
    -- The kinds of classes that a policy is certified for; null if none is.
    CASE WHEN certificate.p_value IS NOT NULL THEN certificate.document -> 'kinds' END AS certified,
    certificate.thresholds AS policy,
    CASE WHEN calibrator.standing THEN certificate.document END AS standing,
    -- The same order as in `latest_calibration`, which takes the first.
    calibration.state = 'current'
    AND calibrator.id = first_value(calibrator.id) OVER (
        ORDER BY calibration.state = 'current' DESC, calibrator.chosen_at DESC, calibrator.id DESC
    ) AS is_in_use,
    calibration.state = 'current' AS has_current
FROM calibrator
CROSS JOIN
    LATERAL (
        SELECT snapshot.*
        FROM calibration AS snapshot
        WHERE snapshot.calibrator_id = calibrator.id
        ORDER BY snapshot.state = 'current' DESC, snapshot.number DESC
        LIMIT 1
    ) AS calibration
LEFT JOIN certificate ON calibration.id = certificate.calibration_id
LEFT JOIN recalibration_request AS request
    ON
        calibrator.id = request.calibrator_id
        AND calibrator.retired_at IS NULL
WHERE calibrator.classifier_id = :classifier_id
ORDER BY calibration.state = 'current' DESC, calibrator.chosen_at DESC, calibrator.id DESC;

-- name: choose
-- Let decisions be made under a setting from now on. A retired one is kept current again.
UPDATE calibrator
SET
    chosen_at = clock_timestamp(),
    retired_at = NULL
WHERE id = :calibrator_id;

-- name: retire_calibrator
-- Stop keeping a setting current. A setting that was retired before keeps the time of that.
UPDATE calibrator
SET retired_at = coalesce(retired_at, clock_timestamp())
WHERE id = :calibrator_id;

-- name: drop_request
-- Delete the recalibration that a retired setting is waiting for.
DELETE FROM recalibration_request
WHERE calibrator_id = :calibrator_id;

-- name: lock
-- Wait until no other transaction recalibrates under a setting.
SELECT pg_advisory_xact_lock(2, :lock_key);

-- name: try_lock
-- Take the same lock if nobody else holds it.
SELECT pg_try_advisory_xact_lock(2, :lock_key);
