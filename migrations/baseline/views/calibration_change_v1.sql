-- What each snapshot of a classifier changed against the one before it that is still kept, whichever its setting:
-- points and labels, training data, KNN parameters, and what was asked for. Points of vp are compared if both snapshots
-- have some.
CREATE VIEW report.calibration_change_v1 AS
SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot.
    calibration,
    -- When it became current.
    created_at,
    -- Reason for which it was made.
    reason,
    -- Method of calibration, venn-admit or venn-abers.
    method,
    -- Key of the setting, as `venn-admit calibrations` lists it.
    setting,
    -- current or retired.
    state,
    -- Number of points of mc.
    mc_count,
    -- Number of points of vp.
    vp_count,
    -- The snapshot before; null for the first.
    previous,
    -- Points that the snapshot before did not have; null for the first, as are the next three.
    arrived,
    -- Points with another label, or in the other split.
    relabelled,
    -- Points that it no longer has.
    gone,
    -- Points whose q or d is another.
    moved,
    -- Whether the KNN parameters are others.
    other_parameters,
    -- Whether the training data are others, which shows in points that moved under the same KNN parameters.
    other_training,
    -- What was asked for otherwise, such as {kappa,delta}; empty if nothing was.
    other_settings
FROM venn_admit.snapshot_change_v1;
