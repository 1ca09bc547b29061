-- What is known of the promise of each classifier's calibrator in use, from the labels that came at random for points
-- that were decided on: a row for each class, group and partition, whose figures may be looked at after every label.
CREATE VIEW report.monitor_v2 AS
WITH newest AS (
    SELECT
        calibrator.classifier_id,
        calibrator.id AS calibrator_id,
        calibrator.alpha,
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
    -- Whether the promise, true classes, groups, partitions or the mix of partitions is watched; early_promise,
    -- early_true_classes and early_groups are the early warnings of the first three; labelled_classes and
    -- labelled_scores are about whether labelled points are a random sample, by predicted classes and by scores within
    -- each.
    reading.lamp,
    -- Kind of class that it is about: predicted, true, group:ATTRIBUTE or predicted*group:ATTRIBUTE.
    watched.kind,
    -- Class that a row of the promise is predicted as, that a true class is, or that the points of a partition or of a
    -- group are predicted as; null for a group of all classes.
    classifier.class_names[watched.class_number + 1] AS class_name,
    -- Value of the attribute that the points of a group have; null if it is about no group.
    watched."group",
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    (ARRAY['none', 'some', 'all'])[watched.match_group + 1] AS matching_neighbours,
    -- Documents that count.
    reading.documents,
    -- Admitted points of these with a label; for the mix, documents; for the sample, pairs.
    reading.points AS labels,
    -- Admitted points whose prediction is the label; null for the mix and the sample.
    reading.correct,
    -- Share of the admitted points that is right; null for the mix and the sample.
    reading.correct / nullif(reading.points, 0)::double precision AS share_correct,
    -- The share that is promised, 1 - alpha.
    (1 - newest.alpha)::double precision AS target,
    -- Bound that the share right exceeds at all times, with 95 percent confidence; null for the mix and the sample.
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
    CASE
        WHEN reading.lamp IN ('partitions', 'mix') THEN reading.lamp = 'partitions'
        WHEN reading.lamp LIKE 'early%' OR reading.lamp LIKE 'labelled%' THEN FALSE
        ELSE watched.kind = any(promised.kinds)
    END AS is_harmful
FROM venn_admit.monitor_reading AS reading
INNER JOIN newest ON reading.monitor_id = newest.monitor_id
INNER JOIN venn_admit.monitor AS monitor ON newest.monitor_id = monitor.id
CROSS JOIN LATERAL venn_admit.watched_v2(monitor.plan, reading.lamp, reading.number) AS watched
INNER JOIN venn_admit.promised_kinds_v1 AS promised ON newest.calibrator_id = promised.calibrator_id
INNER JOIN venn_admit.classifier AS classifier ON newest.classifier_id = classifier.id;
