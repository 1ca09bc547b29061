-- The calibration points of every snapshot, current or not, one by one: their place, their label, and what the snapshot
-- makes of them.
CREATE VIEW report.calibration_point_v1 AS
SELECT
    -- Name of the classifier.
    point.classifier,
    -- The snapshot.
    point.calibration,
    -- Method of calibration, venn-admit or venn-abers.
    point.method,
    -- mc or vp.
    point.split,
    -- The user's id of the exemplar.
    exemplar.external_id,
    -- Document that the exemplar is part of; null if it stands alone.
    exemplar.document_id,
    -- Number of the true class, as the snapshot has it.
    point.label,
    -- Name of the true class.
    point.class_names[point.label + 1] AS class_name,
    -- Number of the predicted class: the KNN's prediction for venn-admit, the network's for venn-abers.
    point.predicted,
    -- Name of the predicted class.
    point.class_names[point.predicted + 1] AS predicted_class,
    -- Whether the prediction is right.
    point.predicted = point.label AS is_right,
    -- q, matches among consecutive nearest neighbours; null for a classifier without vectors.
    point.q,
    -- d, distance to the nearest training exemplar; null for a classifier without vectors.
    point.d,
    -- Quartile of d among all points of the snapshot, 1 to 4; null for a classifier without vectors.
    width_bucket(point.d, spread.quartiles) + 1 AS d_quartile,
    -- 1 - pi of the label for venn-admit, the score of the prediction for venn-abers.
    point.score,
    -- Whether the ADMIT set has one class; null in mc and unless the method is venn-admit.
    point.is_singleton,
    -- Whether the snapshot admits the point by plain probabilities: of vp for venn-admit, left out of its own category;
    -- of any split for venn-abers, though its bounds rest on the very points of mc. Null for mc of venn-admit.
    point.is_admitted
FROM venn_admit.judged_point_v1 AS point
LEFT JOIN venn_admit.snapshot_quartiles AS spread ON point.calibration = spread.calibration_id
-- Every point has an exemplar. An outer join is left out by a query that asks for nothing of it.
LEFT JOIN venn_admit.exemplar AS exemplar ON point.exemplar_id = exemplar.id;
