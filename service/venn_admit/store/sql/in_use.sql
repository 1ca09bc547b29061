-- name: lock
-- Wait until nobody else decides which calibration of a classifier is in use. Rows that refer to the classifier follow,
-- which needs its own row: that is kept first, so that two sessions cannot wait for each other.
SELECT pg_advisory_xact_lock(5, classifier.id)
FROM (
    SELECT id
    FROM classifier
    WHERE id = :classifier_id
    FOR KEY SHARE
) AS classifier;

-- name: current_calibration
-- The current snapshot of a calibrator.
SELECT id
FROM calibration
WHERE
    calibrator_id = :calibrator_id
    AND state = 'current';

-- name: judged_points
-- Whether a snapshot admits each of the calibration points that it says so of.
SELECT
    exemplar_id,
    is_admitted
FROM judged_point_v1
WHERE
    calibration = :calibration_id
    AND is_admitted IS NOT NULL
ORDER BY exemplar_id;

-- name: add_withheld
-- Store why a new snapshot is not put in use.
INSERT INTO withheld_calibration (calibration_id, in_use_id, points, share, share_in_use)
VALUES (:calibration_id, :in_use_id, :points, :share, :share_in_use);

-- name: add_use
-- Add to the history that a snapshot is in use from now on.
INSERT INTO calibration_use (classifier_id, calibrator_id, calibration_id, origin, key_id, subject, reason)
VALUES (
    :classifier_id,
    :calibrator_id,
    :calibration_id,
    :origin,
    :key_id,
    :subject,
    :reason
);

-- name: uses
-- Which snapshots of a classifier were in use, the newest first.
SELECT
    calibration,
    setting,
    since,
    until,
    origin,
    key_name,
    subject,
    reason
FROM venn_admit.calibration_use_row_v1
WHERE classifier = :name
ORDER BY since DESC
LIMIT :row_limit;

-- name: withheld
-- What was found of the snapshots of a classifier that are stored and not in use, the newest first.
SELECT
    calibration,
    created_at,
    in_use,
    points,
    share,
    share_in_use
FROM venn_admit.withheld_row_v1
WHERE
    classifier = :name
    AND state = 'withheld'
ORDER BY calibration DESC;
