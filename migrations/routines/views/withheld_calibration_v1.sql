-- The snapshots that were not put in use when they were made, because they would admit far less than the one in use.
CREATE VIEW report.withheld_calibration_v1 AS
SELECT
    -- What users call the classifier.
    classifier,
    -- The snapshot.
    calibration,
    -- withheld, or current or retired if it was put in use later.
    state,
    -- When it was made.
    created_at,
    -- The snapshot that stayed in use, which may be gone by now.
    in_use,
    -- Calibration points that both judge; 0 if each was measured on its own.
    points,
    -- Share of them that it would admit.
    share,
    -- Share of them that the one in use would admit.
    share_in_use
FROM venn_admit.withheld_row_v1;
