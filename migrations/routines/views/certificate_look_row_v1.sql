-- Every certificate that looked at the held-out labels of a classifier, with those before it. The generations of a
-- classifier share these labels. first_id: the first generation.
CREATE VIEW venn_admit.certificate_look_row_v1 AS
SELECT
    look.id,
    look.calibration_id AS calibration,
    look.calibrator_id AS setting,
    look.created_at,
    look.confidence,
    classifier.name AS classifier,
    classifier.first_id,
    count(*) OVER earlier AS looks,
    greatest(0, 1 - sum(1 - look.confidence) OVER earlier) AS joint_confidence
FROM venn_admit.certificate_look AS look
INNER JOIN (
    SELECT
        id,
        name,
        coalesce(original_id, id) AS first_id
    FROM venn_admit.classifier
) AS classifier ON look.classifier_id = classifier.id
WINDOW earlier AS (PARTITION BY classifier.first_id ORDER BY look.id);
