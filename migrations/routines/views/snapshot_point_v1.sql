-- The calibration points of every snapshot, in use, kept current or neither, with what their setting says: the base of
-- the views on calibration points.
CREATE VIEW venn_admit.snapshot_point_v1 AS
SELECT
    classifier.id AS classifier_id,
    classifier.name AS classifier,
    classifier.class_names,
    classifier.neighbour_count,
    calibration.id AS calibration,
    calibration.number,
    calibration.calibrator_id,
    calibrator.method,
    calibrator.alpha,
    calibrator.thresholds,
    -- Null if the thresholds of the setting decide; empty if the policy of the average promise does.
    CASE WHEN calibrator.promise = 'average' THEN ARRAY[]::text[] ELSE calibrator.certify END AS certify,
    certificate.thresholds AS policy,
    calibrator.bin_edges,
    point.exemplar_id,
    point.split,
    point.label,
    point.predicted,
    point.match_count AS q,
    point.bin,
    point.distance AS d,
    point.score,
    point.is_singleton
FROM venn_admit.calibration AS calibration
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
LEFT JOIN venn_admit.certificate AS certificate ON calibration.id = certificate.calibration_id
INNER JOIN venn_admit.calibration_point AS point
    ON
        calibration.calibrator_id = point.calibrator_id
        AND venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until);
