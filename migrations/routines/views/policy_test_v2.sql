-- Every test that was made for a certificate, in order, with a row for each class that a policy is tested for. Older
-- certificates, whose proposals were tested another way, have no rows.
CREATE VIEW report.policy_test_v2 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot.
    calibration.id AS calibration,
    -- Points of evidence: of mc and vp.
    (certificate.document ->> 'points')::integer AS points,
    -- Number of the chain of policies, from 1.
    chain.number::integer AS chain,
    -- class for the thresholds of one predicted class, group for those of one group, class in group for those of one
    -- predicted class within one; one threshold or by class for policies of everything.
    chain.found ->> 'name' AS chain_name,
    -- Level of the tests of the chain, its part of 1 - confidence.
    (chain.found ->> 'level')::double precision AS level,
    -- Number of the policy in its chain, from 1; they are tested from strict to liberal, until one fails.
    step.number::integer AS step,
    -- Whether its p-values, and those of every policy before it, are at most the level.
    (step.found ->> 'passed')::boolean AS has_passed,
    -- Thresholds on the score, for the predicted classes of the chain; null is never.
    step.found -> 'thresholds' AS thresholds,
    -- Thresholds on the share right that knn foretells, for the same classes.
    step.found -> 'shares' AS shares,
    -- Points of evidence that the policy admits.
    (step.found ->> 'admitted')::integer AS admitted,
    -- predicted or true, or group:ATTRIBUTE or predicted*group:ATTRIBUTE.
    tested.found ->> 'kind' AS kind,
    -- Value of the attribute; null unless the kind is of groups.
    tested.found ->> 'group' AS "group",
    -- Number of the class; null for a group of all predicted classes.
    (tested.found ->> 'class')::integer AS class,
    -- Name of the class.
    classifier.class_names[(tested.found ->> 'class')::integer + 1] AS class_name,
    -- Points of evidence that it admits in the class.
    (tested.found ->> 'admitted')::integer AS class_admitted,
    -- Those of them whose prediction is right.
    (tested.found ->> 'right')::integer AS class_right,
    -- The p-value of the class.
    (tested.found ->> 'p_value')::double precision AS p_value
FROM venn_admit.certificate AS certificate
INNER JOIN venn_admit.calibration AS calibration ON certificate.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
CROSS JOIN LATERAL (SELECT coalesce(certificate.document -> 'certificate', certificate.document) AS document) AS whole
CROSS JOIN LATERAL jsonb_array_elements(whole.document -> 'chains') WITH ORDINALITY AS chain (found, number)
CROSS JOIN LATERAL jsonb_array_elements(chain.found -> 'steps') WITH ORDINALITY AS step (found, number)
CROSS JOIN LATERAL jsonb_array_elements(step.found -> 'classes') AS tested (found);
