-- What became of the certificate that each snapshot was asked for: the thresholds of the certified policy, or how many
-- documents it lacks.
CREATE VIEW report.policy_v3 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot.
    calibration.id AS calibration,
    -- Whether it is current, retired, or withheld since it was never put in use.
    calibration.state,
    -- When the snapshot was made.
    calibration.created_at,
    -- Error level: at least 1 - alpha of the admitted of each class asked for should be right.
    calibrator.alpha,
    -- What the certificate was asked for: predicted, true, group:ATTRIBUTE or predicted*group:ATTRIBUTE.
    calibrator.certify,
    -- Confidence that was asked for, over the calibration data.
    calibrator.confidence,
    -- Test of documents of several points: finite-sample or asymptotic.
    calibrator.document_test,
    -- Whether a policy is certified; without one, everything is rejected.
    certificate.p_value IS NOT NULL AS is_certified,
    -- Least value that admits, for each predicted class: null for a class that is never admitted, and null as a whole
    -- if no policy is certified.
    CASE WHEN certificate.p_value IS NOT NULL THEN certificate.thresholds END AS thresholds,
    -- What the thresholds bound: score, or lower for the lower probability in older certificates.
    CASE WHEN certificate.p_value IS NOT NULL THEN certificate.bounded END AS bounded,
    -- Least value of each group, by attribute and predicted class, which must be reached too: a group that is not there
    -- is never admitted. Null if none were asked for, or no policy is certified.
    certificate.groups,
    -- The largest p-value of a class under the policy; null if none is certified.
    certificate.p_value,
    -- Share of the evidence that the policy admits; null if none is certified.
    CASE WHEN certificate.p_value IS NOT NULL THEN certificate.share END AS share,
    -- Documents of evidence: of mc and vp, or of vp alone in older certificates.
    certificate.documents,
    -- Documents of evidence with which a policy is likely to pass, at the rates seen: null if one is certified, or if
    -- no number would do.
    certificate.documents_needed,
    -- Kinds of classes that the policy covers; null if none is certified. If the strongest promise was asked for, that
    -- is predicted alone where more could not be had.
    CASE
        WHEN certificate.p_value IS NOT NULL
            THEN array(SELECT jsonb_array_elements_text(certificate.document -> 'kinds'))
    END AS certified_kinds
FROM venn_admit.certificate AS certificate
INNER JOIN venn_admit.calibration AS calibration ON certificate.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
-- Others have the average promise.
WHERE calibrator.certify IS NOT NULL;
