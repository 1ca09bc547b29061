-- Every certificate that looked at the held-out labels of a classifier, with those before it. The generations of a
-- classifier share these labels, and remember what deleted ones have spent. first_id: the first generation.
CREATE VIEW venn_admit.certificate_look_row_v2 AS
SELECT
    look.id,
    look.calibration_id AS calibration,
    look.calibrator_id AS setting,
    look.created_at,
    look.confidence,
    classifier.name AS classifier,
    classifier.first_id,
    classifier.earlier_looks + count(*) OVER earlier AS looks,
    greatest(0, 1 - classifier.earlier_spent - sum(1 - look.confidence) OVER earlier) AS joint_confidence
FROM venn_admit.certificate_look AS look
INNER JOIN (
    SELECT
        id,
        name,
        deleting_since,
        coalesce(original_id, id) AS first_id,
        max(earlier_looks) OVER generations AS earlier_looks,
        max(earlier_spent) OVER generations AS earlier_spent
    FROM venn_admit.classifier
    WINDOW generations AS (PARTITION BY coalesce(original_id, id))
) AS classifier ON look.classifier_id = classifier.id
WHERE classifier.deleting_since IS NULL
WINDOW earlier AS (PARTITION BY classifier.first_id ORDER BY look.id);
