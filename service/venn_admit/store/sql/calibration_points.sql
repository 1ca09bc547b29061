-- name: rows_of_snapshot
-- The rows of the snapshot with a number, or the open ones if there is none. A point without an ADMIT set has an empty
-- one here, without vectors q is -1 and d is NaN, and without logits there is a NaN.
SELECT
    exemplar_id,
    split = 'vp' AS in_vp,
    label,
    predicted,
    coalesce(match_count, -1) AS match_count,
    coalesce(distance, 'NaN') AS distance,
    score,
    bin,
    coalesce(admit_set, CAST(repeat('0', :class_count) AS bit varying)) AS admit_set,
    coalesce(logits, ARRAY['NaN'::float8]) AS logits
FROM calibration_point
WHERE
    calibrator_id = :calibrator_id
    AND CASE
        WHEN CAST(:number AS integer) IS NULL THEN valid_until IS NULL
        ELSE is_in_snapshot_v1(:number, valid_from, valid_until)
    END;

-- name: close_points
-- Close the open rows that the snapshot of this number no longer holds.
UPDATE calibration_point
SET valid_until = :number
WHERE
    exemplar_id = ANY(:exemplar_ids ::bigint[])
    -- Not a condition of an index: without statistics, all open rows of the calibrator would be read.
    AND calibrator_id + 0 = :calibrator_id
    AND valid_until IS NULL;

-- name: delete_unheld_points
-- Delete the closed rows that no remaining snapshot holds.
DELETE FROM calibration_point AS point
WHERE
    point.calibrator_id = :calibrator_id
    AND point.valid_until IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM calibration
        WHERE
            calibration.calibrator_id = point.calibrator_id
            AND is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
    );

-- name: vacuum_pages
-- Mark pages as all-visible that hold no dead row, and leave the indices alone.
VACUUM (SKIP_LOCKED, INDEX_CLEANUP off, TRUNCATE off) calibration_point;

-- name: vacuum_points
-- Mark pages as all-visible, because an index-only scan visits the table otherwise. It is skipped if another session
-- holds the lock.
VACUUM (SKIP_LOCKED) calibration_point;

-- name: vacuum_and_analyse_points
-- Do so, and refresh the statistics, for which up to 30,000 rows are read.
VACUUM (ANALYZE, SKIP_LOCKED) calibration_point;
