-- Every decision with the exemplar it is on, in the user's words.
CREATE OR REPLACE VIEW report.decision_v1 AS
SELECT
    classifier.name AS classifier,
    decision.id AS decision_id,
    decision.calibration_id AS calibration,
    exemplar.external_id,
    exemplar.document_id,
    exemplar.label,
    exemplar.attributes,
    decision.weighted,
    decision.require_full_match,
    decision.predicted,
    -- Name of the predicted class.
    classifier.class_names[decision.predicted + 1] AS predicted_class,
    -- q, matches among consecutive nearest neighbours.
    decision.match_count AS q,
    -- d, distance to the nearest training exemplar.
    decision.distance AS d,
    evidence.admit_set,
    evidence.band_size,
    evidence.threshold,
    evidence.category_size,
    decision.upweight,
    decision.lower,
    decision.upper,
    decision.decision,
    -- Name of the admitted class; null if rejected.
    classifier.class_names[decision.decision + 1] AS decided_class,
    decision.reason,
    decision.created_at
FROM venn_admit.decision AS decision
LEFT JOIN venn_admit.admit_evidence AS evidence ON decision.id = evidence.decision_id
INNER JOIN venn_admit.exemplar AS exemplar ON decision.exemplar_id = exemplar.id
INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id;
