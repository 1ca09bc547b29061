-- Every decision by the method venn-admit with the exemplar it is on, in the user's words.
CREATE OR REPLACE VIEW report.decision_v1 AS
SELECT
    -- Name of the classifier.
    classifier,
    -- Key of the decision.
    decision_id,
    -- The snapshot that decided.
    calibration,
    -- The user's id of the exemplar.
    external_id,
    -- Document that the exemplar is part of; null if it stands alone.
    document_id,
    -- Number of the true class, as it is known now; null while unknown.
    label,
    -- Other values that the user supplied with the exemplar.
    attributes,
    -- Whether the probabilities are up-weighted by the localizer.
    weighted,
    -- Whether a point with q < K was rejected.
    require_full_match,
    -- Number of the class that the KNN predicts.
    predicted,
    -- Name of the predicted class.
    predicted_class,
    -- q, matches among consecutive nearest neighbours.
    q,
    -- d, distance to the nearest training exemplar.
    d,
    -- ADMIT set, one bit per class.
    admit_set,
    -- Number of points of each class in the band, in mc.
    band_size,
    -- Probability that each class must reach to be in the set; may be -infinity.
    threshold,
    -- Number of points of the category, in vp; 0 if the set is not a singleton.
    category_size,
    -- Up-weight; infinite if psi' = 0; null if the set is not a singleton.
    upweight,
    -- Lower probability of the prediction; null if the set is not a singleton.
    lower,
    -- Upper probability of the prediction; null if the set is not a singleton.
    upper,
    -- Number of the admitted class; null if rejected.
    decision,
    -- Name of the admitted class; null if rejected.
    decided_class,
    -- Why it was rejected; null if admitted.
    reason,
    -- When it was decided.
    created_at
FROM report.decision_v2
WHERE method = 'venn-admit';
