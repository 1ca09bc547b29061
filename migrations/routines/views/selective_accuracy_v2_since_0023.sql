-- How often Venn-ADMIT is right about what it admits, as selective_accuracy_v1, with a verdict by the 95 % interval
-- instead of the share itself: 1 - alpha is met, it is missed, or this sample cannot tell.
--
-- Points of one document are right or wrong together. Where documents hold several, the verdict's interval takes each
-- document for one point, which makes it wider than that of `evaluate`, which resamples documents.
CREATE OR REPLACE VIEW report.selective_accuracy_v2 AS
SELECT
    -- Name of the classifier.
    classifier,
    -- The snapshot that decided.
    calibration,
    -- Whether the decisions are up-weighted by the localizer.
    weighted,
    -- Whether only predictions with q = K count as admitted.
    q_equals_k,
    -- What a row counts by: true, the true class; predicted, the predicted class; or all.
    per,
    -- Number of the class; null over all.
    class,
    -- Name of the class; null over all.
    class_name,
    -- Admitted points whose prediction is the label.
    correct,
    -- Admitted points.
    admitted,
    -- Labelled points that were decided on, admitted or not, of all classes.
    points,
    -- Documents that the admitted points are part of.
    documents,
    -- Share of the admitted points that is right.
    share_correct,
    -- Share of all points that is admitted in this row.
    share_admitted,
    -- Lower end of Wilson's 95 percent interval of the share correct; it takes points for independent.
    wilson_low,
    -- Upper end of it.
    wilson_high,
    -- The share that is promised, 1 - alpha.
    target,
    -- Whether the target is met, missed, or this sample cannot_tell.
    verdict
FROM report.selective_accuracy_v3
WHERE method = 'venn-admit';
