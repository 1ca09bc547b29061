-- The kinds of classes about which the current snapshot of each calibrator promises something, none of which is
-- certified under the pointwise and average promises.
CREATE VIEW venn_admit.promised_kinds_v1 AS
SELECT
    calibrator.id AS calibrator_id,
    CASE
        WHEN calibrator.promise = 'strongest' AND certificate.p_value IS NOT NULL
            THEN array(SELECT jsonb_array_elements_text(certificate.document -> 'kinds'))
        WHEN calibrator.certify IS NULL OR calibrator.promise = 'strongest' THEN '{predicted}'::text[]
        ELSE calibrator.certify
    END AS kinds
FROM venn_admit.calibrator AS calibrator
LEFT JOIN
    venn_admit.calibration AS calibration
    ON calibrator.id = calibration.calibrator_id AND calibration.state = 'current'
LEFT JOIN venn_admit.certificate AS certificate ON calibration.id = certificate.calibration_id;
