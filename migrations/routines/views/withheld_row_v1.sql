-- The snapshots that were not put in use when they were made, because they would admit far less than the one in use.
CREATE VIEW venn_admit.withheld_row_v1 AS
SELECT
    classifier.name AS classifier,
    calibration.id AS calibration,
    calibration.state,
    calibration.created_at,
    found.in_use_id AS in_use,
    found.points,
    found.share,
    found.share_in_use
FROM venn_admit.withheld_calibration AS found
INNER JOIN venn_admit.calibration AS calibration ON found.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id;
