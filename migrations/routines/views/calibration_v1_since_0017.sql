-- Every calibration snapshot with the setting it was made under.
CREATE OR REPLACE VIEW report.calibration_v1 AS
SELECT
    classifier.name AS classifier,
    calibration.id AS calibration,
    calibration.number,
    calibration.state,
    calibration.created_at,
    calibration.reason,
    calibrator.alpha,
    calibrator.delta,
    calibrator.kappa,
    calibrator.bin_edges,
    calibrator.thresholds,
    radius.s_hat,
    radius.omega,
    calibration.mc_count,
    calibration.vp_count
FROM venn_admit.calibration AS calibration
LEFT JOIN venn_admit.band_radius AS radius ON calibration.id = radius.calibration_id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id;
