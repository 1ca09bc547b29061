-- Every calibration snapshot of the method venn-admit, with the setting it was made under.
CREATE OR REPLACE VIEW report.calibration_v1 AS
SELECT
    -- Name of the classifier.
    classifier,
    -- Key of the snapshot, to which decisions are pinned.
    calibration,
    -- 1, 2, ... within the setting.
    number,
    -- current or retired.
    state,
    -- When it became current.
    created_at,
    -- Reason for which it was made.
    reason,
    -- Error level, an exact decimal.
    alpha,
    -- Band radius in standard deviations of d; may be infinite.
    delta,
    -- Least number of points of each class in a band.
    kappa,
    -- Lower edges of the bins of q.
    bin_edges,
    -- Least lower probability for each predicted class.
    thresholds,
    -- Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.
    s_hat,
    -- Band radius, delta * s_hat.
    omega,
    -- Number of points of mc.
    mc_count,
    -- Number of points of vp.
    vp_count
FROM report.calibration_v2
WHERE method = 'venn-admit';
