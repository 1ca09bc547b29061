-- What is known of the promise of each classifier's calibrator in use, from the labels that came at random for points
-- that were decided on: a row for each class and partition, whose figures may be looked at after every label. Groups
-- and early warnings are in monitor_v2.
CREATE VIEW report.monitor_v1 AS
SELECT
    -- What users call the classifier.
    classifier,
    -- Number of the setting that is watched.
    setting,
    -- Whether the promise, true classes, partitions or the mix of partitions is watched.
    lamp,
    -- Class that a row of the promise is predicted as, that a true class is, or that the points of a partition are
    -- predicted as.
    class_name,
    -- Group of q of a partition: none, some or all of the nearest neighbours match; null for a class, and if the
    -- classifier has logits only, whose partitions are predicted classes.
    matching_neighbours,
    -- Documents that count.
    documents,
    -- Admitted points of these with a label; for the mix, documents.
    labels,
    -- Admitted points whose prediction is the label; null for the mix.
    correct,
    -- Share of the admitted points that is right; null for the mix.
    share_correct,
    -- The share that is promised, 1 - alpha.
    target,
    -- Bound that the share right exceeds at all times, with 95 percent confidence; null for the mix.
    lower_bound,
    -- Evidence against what the lamp stands for, now; null if it is not tested.
    e_value,
    -- The largest e-value so far; null if it is not tested.
    largest_e_value,
    -- The e-value that lights the lamp.
    needed,
    -- Whether the lamp is lit.
    is_lit,
    -- Whether the lamp means that admitted predictions may be wrong more often than they should be.
    is_harmful
FROM report.monitor_v2
WHERE lamp IN ('promise', 'true_classes', 'partitions', 'mix');
