-- The threshold of each predicted class of every snapshot with the average promise, and what it rests on.
CREATE VIEW report.average_policy_v1 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot.
    calibration.id AS calibration,
    -- Whether it is current, retired, or withheld since it was never put in use.
    calibration.state,
    -- When the snapshot was made.
    calibration.created_at,
    -- Error level: over calibrations and batches, on average at most alpha of the admitted are wrong.
    calibrator.alpha,
    -- Number of the predicted class.
    (of_class.number - 1)::integer AS class,
    -- Name of the class.
    classifier.class_names[of_class.number] AS class_name,
    -- Least score that admits; null for a class that is never admitted.
    (of_class.found ->> 'threshold')::double precision AS threshold,
    -- Calibration points of the class that count, one of a document.
    (of_class.found ->> 'labels')::integer AS labels,
    -- Those of them that are wrong.
    (of_class.found ->> 'wrong')::integer AS wrong,
    -- Points of the batch: the calibration points and recent traffic.
    (of_class.found ->> 'batch')::integer AS batch,
    -- Points of the batch that are admitted.
    (of_class.found ->> 'admitted')::integer AS admitted,
    -- Wrong calibration points that are admitted.
    (of_class.found ->> 'admitted_wrong')::integer AS admitted_wrong
FROM venn_admit.certificate AS certificate
INNER JOIN venn_admit.calibration AS calibration ON certificate.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
CROSS JOIN LATERAL jsonb_array_elements(certificate.document -> 'classes') WITH ORDINALITY AS of_class (found, number)
WHERE certificate.document ->> 'promise' = 'average';
