-- name: calibrators
-- The settings of a classifier, the one in use first: each with its current snapshot and with the recalibration that
-- it waits for.
SELECT
    calibrator.id,
    calibrator.alpha,
    calibrator.delta,
    calibrator.kappa,
    calibrator.bin_edges,
    calibrator.thresholds,
    calibrator.retired_at,
    calibration.id AS calibration_id,
    calibration.created_at AS calibrated_at,
    calibration.mc_count,
    calibration.vp_count,
    request.reason AS due_for,
    request.error AS due_error,
    -- The order that `latest_calibration` picks the first of.
    calibrator.id = first_value(calibrator.id) OVER (
        ORDER BY calibrator.chosen_at DESC, calibrator.id DESC
    ) AS is_in_use
FROM calibrator
INNER JOIN calibration ON calibrator.id = calibration.calibrator_id
LEFT JOIN recalibration_request AS request
    ON
        calibrator.id = request.calibrator_id
        AND calibrator.retired_at IS NULL
WHERE
    calibrator.classifier_id = :classifier_id
    AND calibration.state = 'current'
ORDER BY calibrator.chosen_at DESC, calibrator.id DESC;

-- name: retire_calibrator
-- A setting is no longer kept current; one that was retired before stays so since then.
UPDATE calibrator
SET retired_at = coalesce(retired_at, clock_timestamp())
WHERE id = :calibrator_id;

-- name: drop_request
-- Nor does it wait for a recalibration.
DELETE FROM recalibration_request
WHERE calibrator_id = :calibrator_id;
