-- What each stage of a cascade serves of the evidence of its certificates: a row a certificate, stage and class.
CREATE VIEW report.cascade_stage_v1 AS
SELECT
    -- What users call the cascade.
    cascade.name AS cascade,
    -- Number of the certificate.
    certified.id AS cascade_calibration,
    -- When it looked at the labels.
    certified.created_at,
    -- Whether the cascade serves by it, because it is the newest.
    certified.id = max(certified.id) OVER (PARTITION BY certified.cascade_id) AS is_current,
    -- Share of what is served of each class that may be wrong.
    certified.alpha,
    -- Confidence that was asked for.
    certified.confidence,
    -- Whether a policy passed; without one, nothing is served.
    certified.is_certified,
    -- Number of points of evidence.
    certified.points,
    -- Place of the stage, from 1.
    stage.place AS stage,
    -- What users call its classifier.
    classifier.name AS classifier,
    -- Snapshot of the classifier then, which may be gone by now.
    result.calibration_id AS calibration,
    -- What a point costs that reaches the stage, in the user's unit.
    stage.cost,
    -- Points of evidence that reach the stage.
    result.reached,
    -- Number of the predicted class.
    of_class.number AS class,
    -- Name of the predicted class.
    classifier.class_names[of_class.number + 1] AS class_name,
    -- Least score at which it is served; null for never.
    result.thresholds[of_class.number + 1] AS threshold,
    -- Points of evidence that the stage serves as this class.
    result.served[of_class.number + 1] AS served,
    -- Those of them that are right.
    result.served_right[of_class.number + 1] AS served_right
FROM venn_admit.cascade_calibration AS certified
INNER JOIN venn_admit.classifier_cascade AS cascade ON certified.cascade_id = cascade.id
INNER JOIN venn_admit.cascade_calibration_stage AS result ON certified.id = result.cascade_calibration_id
INNER JOIN venn_admit.cascade_stage AS stage ON cascade.id = stage.cascade_id AND result.place = stage.place
INNER JOIN venn_admit.classifier AS classifier ON stage.classifier_id = classifier.id
CROSS JOIN LATERAL generate_series(0, cardinality(result.served) - 1) AS of_class (number);
