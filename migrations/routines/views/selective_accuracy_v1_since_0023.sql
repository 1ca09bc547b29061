-- How often Venn-ADMIT is right about what it admits: each of its four variants on all labelled decisions of each
-- calibration, per true class, per predicted class, and over all.
CREATE OR REPLACE VIEW report.selective_accuracy_v1 AS
SELECT
    -- Name of the classifier.
    accuracy.classifier,
    -- The snapshot that decided.
    accuracy.calibration,
    -- Whether the decisions are up-weighted by the localizer.
    accuracy.weighted,
    -- Whether only predictions with q = K count as admitted.
    accuracy.q_equals_k,
    -- What a row counts by: true, the true class; predicted, the predicted class; or all.
    accuracy.per,
    -- Number of the class; null over all.
    accuracy.class,
    -- Name of the class; null over all.
    accuracy.class_name,
    -- Admitted points whose prediction is the label.
    accuracy.correct,
    -- Admitted points.
    accuracy.admitted,
    -- Labelled points that were decided on, admitted or not, of all classes.
    accuracy.points,
    -- Documents that the admitted points are part of.
    accuracy.documents,
    -- Share of the admitted points that is right.
    accuracy.share_correct,
    -- Share of all points that is admitted in this row.
    accuracy.share_admitted,
    -- Lower end of Wilson's 95 percent interval of the share correct; it takes points for independent.
    accuracy.wilson_low,
    -- Upper end of it.
    accuracy.wilson_high,
    -- few: under 10 admitted points or documents; otherwise whether 1 - alpha are right: well or under.
    CASE
        WHEN least(accuracy.admitted, accuracy.documents) < 10 THEN 'few'
        WHEN accuracy.correct >= (1 - calibration.alpha) * accuracy.admitted THEN 'well'
        ELSE 'under'
    END AS verdict
FROM report.selective_accuracy_v3 AS accuracy
INNER JOIN report.calibration_v1 AS calibration ON accuracy.calibration = calibration.calibration;
