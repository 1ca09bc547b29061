-- The cells of every snapshot by Venn-Abers, current or not, that hold points of mc: a bin of q and a predicted class,
-- and the score from which it admits.
CREATE VIEW report.cell_v1 AS
SELECT
    -- Name of the classifier.
    cell.classifier,
    -- The snapshot.
    cell.calibration,
    -- Number of the bin of q, from 0.
    cell.bin,
    -- Number of the predicted class.
    cell.predicted,
    -- Name of the predicted class.
    cell.class_names[cell.predicted + 1] AS predicted_class,
    -- Points of mc.
    cell.points,
    -- Points of mc whose prediction is right.
    cell.correct,
    -- Least lower probability or, by a policy that bounds it, least score that admits; null for never.
    cell.threshold,
    -- Lower probability of the highest scores.
    step.largest,
    -- Score from which predictions are admitted; null if none are.
    CASE WHEN certificate.bounded = 'score' THEN cell.threshold ELSE step.admits_from END AS admits_from
FROM (
    SELECT
        classifier,
        class_names,
        calibration,
        calibrator_id,
        number,
        bin,
        predicted,
        count(*) AS points,
        count(*) FILTER (WHERE predicted = label) AS correct,
        CASE WHEN certify IS NULL THEN thresholds[predicted + 1]::double precision ELSE policy[predicted + 1] END
            AS threshold
    FROM venn_admit.snapshot_point_v1
    WHERE
        method = 'venn-abers'
        AND split = 'mc'
    GROUP BY
        bin,
        predicted,
        calibration,
        classifier,
        class_names,
        calibrator_id,
        number,
        certify,
        thresholds,
        policy
) AS cell
LEFT JOIN venn_admit.certificate AS certificate ON cell.calibration = certificate.calibration_id
CROSS JOIN
    LATERAL (
        SELECT
            max(found.lower) AS largest,
            min(found.score) FILTER (WHERE found.lower >= cell.threshold) AS admits_from
        FROM venn_admit.venn_abers_step AS found
        WHERE
            found.calibrator_id = cell.calibrator_id
            AND found.cell = cell.bin * cardinality(cell.class_names) + cell.predicted
            AND venn_admit.is_in_snapshot_v1(cell.number, found.valid_from, found.valid_until)
    ) AS step;
