-- Each point that was first decided on under a rule of audits, with the probability that its label would be asked for.
CREATE VIEW report.audit_draw_v1 AS
SELECT
    -- Name of the classifier.
    classifier.name AS classifier,
    -- When it was drawn, or not: at its first decision under a rule.
    draw.created_at,
    -- The user's id of the exemplar.
    exemplar.external_id,
    -- Document that the exemplar is part of; null if it stands alone.
    exemplar.document_id,
    -- Number of the predicted class of that decision.
    draw.predicted,
    -- Name of the predicted class of that decision.
    classifier.class_names[draw.predicted + 1] AS predicted_class,
    -- Whether that decision admitted it.
    draw.is_admitted,
    -- Key of the rule by which it was drawn.
    draw.audit_rule_id AS rule,
    -- Probability with which it was drawn.
    draw.probability,
    -- The smallest probability that a point of the predicted class could have had under the rule.
    draw.least_probability,
    -- Whether it was drawn, so that its label is asked for.
    draw.is_drawn,
    -- Whether a label counts for the draw, whether it came for that or at random, by its probability. Once one was
    -- taken back, none counts any more.
    reviewed.exemplar_id IS NOT NULL AS is_reviewed
FROM venn_admit.audit_draw AS draw
INNER JOIN venn_admit.exemplar AS exemplar ON draw.exemplar_id = exemplar.id
INNER JOIN venn_admit.classifier AS classifier ON exemplar.classifier_id = classifier.id
LEFT JOIN venn_admit.reviewed_draw_v1 AS reviewed ON draw.exemplar_id = reviewed.exemplar_id;
