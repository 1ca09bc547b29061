-- The snapshot that a classifier decides with: the current one of the setting that was chosen last.
CREATE VIEW venn_admit.calibration_in_use_v1 AS
SELECT DISTINCT ON (calibrator.classifier_id)
    calibrator.classifier_id,
    calibration.id AS calibration_id
FROM venn_admit.calibrator AS calibrator
INNER JOIN venn_admit.calibration AS calibration
    ON
        calibrator.id = calibration.calibrator_id
        AND calibration.state = 'current'
ORDER BY calibrator.classifier_id ASC, calibrator.chosen_at DESC, calibrator.id DESC;
