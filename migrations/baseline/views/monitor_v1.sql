-- What is known of the promise of each classifier's calibrator in use, from the labels that came at random for points
-- that were decided on: a row for each class and partition, whose figures may be looked at after every label.
CREATE VIEW report.monitor_v1 AS
WITH newest AS (
    SELECT
        calibrator.classifier_id,
        calibrator.id AS calibrator_id,
        calibrator.alpha,
        calibrator.certify,
        max(monitor.id) AS monitor_id
    FROM venn_admit.calibration_in_use_v1 AS in_use
    INNER JOIN venn_admit.calibration AS calibration ON in_use.calibration_id = calibration.id
    INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
    INNER JOIN venn_admit.monitor AS monitor ON calibrator.id = monitor.calibrator_id
    GROUP BY calibrator.id
)

SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- Number of the setting that is watched.
    newest.calibrator_id AS setting,
    -- Whether the promise, true classes, partitions or the mix of partitions is watched.
    reading.lamp,
    -- Class that a row of the promise is predicted as, that a true class is, or that the points of a partition are
    -- predicted as.
    classifier.class_names[reading.number % cardinality(classifier.class_names) + 1] AS class_name,
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    CASE
        WHEN reading.lamp IN ('partitions', 'mix') AND classifier.neighbour_count IS NOT NULL
            THEN (ARRAY['none', 'some', 'all'])[reading.number / cardinality(classifier.class_names) + 1]
    END AS matching_neighbours,
    -- Documents that count.
    reading.documents,
    -- Admitted points of these with a label; for the mix, documents.
    reading.points AS labels,
    -- Admitted points whose prediction is the label; null for the mix.
    reading.correct,
    -- Share of the admitted points that is right; null for the mix.
    reading.correct / nullif(reading.points, 0)::double precision AS share_correct,
    -- The share that is promised, 1 - alpha.
    (1 - newest.alpha)::double precision AS target,
    -- Bound that the share right exceeds at all times, with 95 percent confidence; null for the mix.
    reading.lower_bound,
    -- Evidence against what the lamp stands for, now; null if it is not tested.
    reading.e_value,
    -- The largest e-value so far; null if it is not tested.
    reading.largest_e_value,
    -- The e-value that lights the lamp.
    reading.needed,
    -- Whether the lamp is lit.
    reading.lit_at IS NOT NULL AS is_lit,
    -- Whether the lamp means that admitted predictions may be wrong more often than they should be.
    CASE reading.lamp
        WHEN 'promise' THEN 'predicted' = any(coalesce(newest.certify, '{predicted}'))
        WHEN 'true_classes' THEN 'true' = any(coalesce(newest.certify, '{predicted}'))
        ELSE reading.lamp = 'partitions'
    END AS is_harmful
FROM venn_admit.monitor_reading AS reading
INNER JOIN newest ON reading.monitor_id = newest.monitor_id
INNER JOIN venn_admit.classifier AS classifier ON newest.classifier_id = classifier.id;
