-- name: place_of_calibration
-- The calibrator of a snapshot, and its number there.
SELECT
    calibrator_id,
    number
FROM calibration
WHERE id = :calibration_id;

-- name: steps_of_snapshot
-- The steps of the snapshot with a number; without a number, the open ones.
SELECT
    cell,
    score,
    lower,
    upper_at,
    upper_above
FROM venn_abers_step
WHERE
    calibrator_id = :calibrator_id
    AND CASE
        WHEN CAST(:number AS integer) IS NULL THEN valid_until IS NULL
        ELSE is_in_snapshot_v1(:number, valid_from, valid_until)
    END
ORDER BY cell, score;

-- name: close_steps
-- Close the open steps that the snapshot of this number no longer holds.
UPDATE venn_abers_step AS step
SET valid_until = :number
FROM unnest(:cells ::integer[], :scores ::double precision[]) AS closed (cell, score)
WHERE
    step.calibrator_id = :calibrator_id
    AND step.cell = closed.cell
    AND step.score = closed.score
    AND step.valid_until IS NULL;

-- name: delete_unheld_steps
-- Delete the closed steps that no remaining snapshot holds.
DELETE FROM venn_abers_step AS step
WHERE
    step.calibrator_id = :calibrator_id
    AND step.valid_until IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM calibration
        WHERE
            calibration.calibrator_id = step.calibrator_id
            AND is_in_snapshot_v1(calibration.number, step.valid_from, step.valid_until)
    );

-- name: add_score_choice
-- Store the score of a new snapshot, and why it was chosen.
INSERT INTO score_choice (calibration_id, score, network_share, reliability_share, standard_error, documents)
VALUES (:calibration_id, :score, :network_share, :reliability_share, :standard_error, :documents);

-- name: score_choice
-- The score that a snapshot was made with, and why it was chosen.
SELECT
    score,
    network_share,
    reliability_share,
    standard_error,
    documents
FROM score_choice
WHERE calibration_id = :calibration_id;
