-- The policies that were proposed for each certificate, in the order in which they are tested, with a row for each
-- class that is tested.
CREATE VIEW report.policy_proposal_v1 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot.
    calibration.id AS calibration,
    -- Number of the proposal, from 1.
    proposal.number::integer AS proposal,
    -- Whether it is the one that is certified.
    coalesce(proposal.number = (certificate.document ->> 'chosen')::integer + 1, FALSE) AS is_chosen,
    -- By how much each share right was to exceed 1 - alpha on mc.
    (proposal.found ->> 'margin')::double precision AS margin,
    -- By how many standard errors.
    (proposal.found ->> 'standard_errors')::double precision AS standard_errors,
    -- Share of mc that it admits, by cross-fitting.
    (proposal.found ->> 'mc_share')::double precision AS mc_share,
    -- Share of vp that it admits.
    (proposal.found ->> 'vp_share')::double precision AS vp_share,
    -- Its p-value, the largest of its classes'.
    (proposal.found ->> 'p_value')::double precision AS p_value,
    -- predicted or true.
    tested.found ->> 'kind' AS kind,
    -- Number of the class.
    (tested.found ->> 'class')::integer AS class,
    -- Name of the class.
    classifier.class_names[(tested.found ->> 'class')::integer + 1] AS class_name,
    -- Points of vp that it admits in the class.
    (tested.found ->> 'vp_admitted')::integer AS vp_admitted,
    -- Those of them whose prediction is right.
    (tested.found ->> 'vp_right')::integer AS vp_right,
    -- The p-value of the class; null if nothing of it was admitted.
    (tested.found ->> 'p_value')::double precision AS class_p_value
FROM venn_admit.certificate AS certificate
INNER JOIN venn_admit.calibration AS calibration ON certificate.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
CROSS JOIN LATERAL jsonb_array_elements(certificate.document -> 'proposals') WITH ORDINALITY AS proposal (found, number)
CROSS JOIN LATERAL jsonb_array_elements(proposal.found -> 'classes') AS tested (found);
