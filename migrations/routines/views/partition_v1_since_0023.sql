-- The current calibration points of each calibrator of the method venn-admit by split, q and label: how many, how many
-- right, how far.
CREATE OR REPLACE VIEW report.partition_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- The current snapshot.
    calibration.id AS calibration,
    -- mc or vp.
    point.split,
    -- q, matches among consecutive nearest neighbours.
    point.match_count AS q,
    -- Number of the true class.
    point.label,
    -- Name of the true class.
    classifier.class_names[point.label + 1] AS class_name,
    -- Calibration points in this cell.
    count(*) AS points,
    -- Points that the KNN predicts right.
    count(*) FILTER (WHERE point.predicted = point.label) AS correct,
    -- Share of the points that the KNN predicts right.
    avg((point.predicted = point.label)::integer) AS accuracy,
    -- Median of d, distance to the nearest training exemplar.
    percentile_cont(0.5) WITHIN GROUP (ORDER BY point.distance) AS median_d,
    -- Points of vp with an ADMIT set of one class.
    count(*) FILTER (WHERE point.is_singleton) AS singletons
FROM venn_admit.calibration_point AS point
INNER JOIN venn_admit.calibration AS calibration
    ON
        point.calibrator_id = calibration.calibrator_id
        AND calibration.state = 'current'
INNER JOIN venn_admit.calibrator AS calibrator
    ON
        calibration.calibrator_id = calibrator.id
        AND calibrator.method = 'venn-admit'
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
WHERE point.valid_until IS NULL
GROUP BY classifier.name, classifier.class_names, calibration.id, point.split, point.match_count, point.label;
