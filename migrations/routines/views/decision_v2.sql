-- Every decision, by either method, with the exemplar it is on and the evidence that it rests on.
CREATE VIEW report.decision_v2 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- Key of the decision, which `venn-admit replay` takes.
    decision.id AS decision_id,
    -- The snapshot that decided.
    decision.calibration_id AS calibration,
    -- Method of calibration, venn-admit or venn-abers.
    calibrator.method,
    -- When it was decided.
    decision.created_at,
    -- Day on which it was decided, in UTC.
    (decision.created_at AT TIME ZONE 'UTC')::date AS day,
    -- The user's id of the exemplar.
    exemplar.external_id,
    -- Document that the exemplar is part of; null if it stands alone.
    exemplar.document_id,
    -- Other values that the user supplied with the exemplar.
    exemplar.attributes,
    -- Number of the true class, as it is known now; null while unknown.
    exemplar.label,
    -- Name of the true class; null while unknown.
    classifier.class_names[exemplar.label + 1] AS label_class,
    -- Whether the probabilities are up-weighted by the localizer.
    decision.weighted,
    -- Whether a point with q < K was rejected.
    decision.require_full_match,
    -- Number of the class that was decided on: the KNN's prediction if the method is venn-admit, the network's if it is
    -- venn-abers.
    decision.predicted,
    -- Name of that class.
    classifier.class_names[decision.predicted + 1] AS predicted_class,
    -- Whether the prediction is the label; null while that is unknown.
    decision.predicted = exemplar.label AS is_right,
    -- Number of the admitted class; null if rejected.
    decision.decision,
    -- Name of the admitted class; null if rejected.
    classifier.class_names[decision.decision + 1] AS decided_class,
    -- Why it was rejected; null if admitted.
    decision.reason,
    -- Lower probability of the prediction; null without a singleton if the method is venn-admit.
    decision.lower,
    -- Upper probability of the prediction; null without a singleton if the method is venn-admit.
    decision.upper,
    -- Up-weight w, 1 if plain; null without a singleton if the method is venn-admit.
    decision.upweight,
    -- q, matches among consecutive nearest neighbours; null for a classifier without vectors.
    decision.match_count AS q,
    -- d, distance to the nearest training exemplar; null for a classifier without vectors.
    decision.distance AS d,
    -- ADMIT set, one bit per class; null unless the method is venn-admit.
    admit.admit_set,
    -- Number of points of each class in the band, in mc; null unless the method is venn-admit.
    admit.band_size,
    -- Probability that each class must reach to be in the set, may be -infinity; null unless the method is venn-admit.
    admit.threshold,
    -- Number of points of the category, in vp; null unless the method is venn-admit.
    admit.category_size,
    -- Score of the prediction; null unless the method is venn-abers.
    abers.score,
    -- Score from which the step of its cell holds; null unless the method is venn-abers.
    abers.step_score
FROM venn_admit.decision AS decision
INNER JOIN venn_admit.calibration AS calibration ON decision.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
INNER JOIN venn_admit.classifier AS classifier ON calibrator.classifier_id = classifier.id
-- Every decision has an exemplar. An outer join is left out by a query that asks for nothing of it.
LEFT JOIN venn_admit.exemplar AS exemplar ON decision.exemplar_id = exemplar.id
LEFT JOIN venn_admit.admit_evidence AS admit ON decision.id = admit.decision_id
LEFT JOIN venn_admit.abers_evidence AS abers ON decision.id = abers.decision_id;
