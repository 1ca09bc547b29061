-- Every certificate that looked at the held-out labels of a classifier, in any of its generations, which share them.
-- Those of deleted generations are counted.
CREATE VIEW report.certificate_look_v2 AS
SELECT
    -- What users call the generation of the classifier.
    classifier,
    -- The first snapshot with the certificate, which may be gone by now.
    calibration,
    -- Key of its setting, as `venn-admit calibrations` lists it.
    setting,
    -- When it looked at the labels.
    created_at,
    -- Confidence that was asked for.
    confidence,
    -- How many certificates of the classifier looked at labels: this one, those before it, and those of deleted
    -- generations.
    looks,
    -- Confidence that all of these hold together, whatever was chosen among them: 1 less the sum of 1 - confidence.
    joint_confidence
FROM venn_admit.certificate_look_row_v2;
