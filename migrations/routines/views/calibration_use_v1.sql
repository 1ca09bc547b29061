-- Which snapshot each classifier decided with, from when until when, who put it in use, and why.
CREATE VIEW report.calibration_use_v1 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot, which may be gone by now.
    used.calibration_id AS calibration,
    -- Key of its setting, as `venn-admit calibrations` lists it.
    used.calibrator_id AS setting,
    -- When it was put in use.
    used.created_at AS since,
    -- When another one was; null while it is in use.
    lead(used.created_at) OVER (PARTITION BY used.classifier_id ORDER BY used.id) AS until,
    -- http, command line or schedule; null for those in use when this history was begun.
    used.origin,
    -- What the key that was shown is for; null without one.
    api_key.name AS key_name,
    -- Subject of the token that was shown; null without.
    used.subject,
    -- Why it was put in use.
    used.reason
FROM venn_admit.calibration_use AS used
INNER JOIN venn_admit.classifier AS classifier ON used.classifier_id = classifier.id
LEFT JOIN venn_admit.api_key AS api_key ON used.key_id = api_key.id;
