-- Which snapshot each classifier decided with, from when until when, who put it in use, and why.
CREATE VIEW venn_admit.calibration_use_row_v1 AS
SELECT
    classifier.name AS classifier,
    used.calibration_id AS calibration,
    used.calibrator_id AS setting,
    used.created_at AS since,
    lead(used.created_at) OVER (PARTITION BY used.classifier_id ORDER BY used.id) AS until,
    used.origin,
    api_key.name AS key_name,
    used.subject,
    used.reason
FROM venn_admit.calibration_use AS used
INNER JOIN venn_admit.classifier AS classifier ON used.classifier_id = classifier.id
LEFT JOIN venn_admit.api_key AS api_key ON used.key_id = api_key.id;
