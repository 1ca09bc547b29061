-- Do what prepare_service_v5 does, and let the role only add to the history of what was in use and of certificates.
CREATE FUNCTION venn_admit.prepare_service_v6()
RETURNS void
LANGUAGE plpgsql
AS $routine$
BEGIN
    PERFORM venn_admit.prepare_service_v5();
    -- Rows go with their classifier.
    REVOKE INSERT, UPDATE ON venn_admit.calibration_use, venn_admit.certificate_look FROM venn_admit_service;
    GRANT INSERT (classifier_id, calibrator_id, calibration_id, origin, key_id, subject, reason)
        ON venn_admit.calibration_use TO venn_admit_service;
    GRANT INSERT (classifier_id, calibrator_id, calibration_id, digest, confidence)
        ON venn_admit.certificate_look TO venn_admit_service;
END
$routine$;
