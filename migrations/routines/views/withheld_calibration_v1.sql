-- The snapshots that were not put in use when they were made, because they would admit far less than the one in use.
CREATE VIEW report.withheld_calibration_v1 AS
SELECT
    -- What users call the classifier.
    classifier.name AS classifier,
    -- The snapshot.
    calibration.id AS calibration,
    -- withheld, or current or retired if it was put in use later.
    calibration.state,
    -- When it was made.
    calibration.created_at,
    -- The snapshot that stayed in use, which may be gone by now.
    found.in_use_id AS in_use,
    -- Calibration points that both judge; 0 if each was measured on its own.
    found.points,
    -- Share of them that it would admit.
    found.share,
    -- Share of them that the one in use would admit.
    found.share_in_use
FROM venn_admit.withheld_calibration AS found
INNER JOIN venn_admit.calibration AS calibration ON found.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id;
