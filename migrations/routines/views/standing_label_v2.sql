-- The label events by which a point can count for a chain, and its weight. A point that was not drawn counts only if
-- its random label weighs something, which it does unless all points of some kind are drawn.
CREATE VIEW venn_admit.standing_label_v2 AS
SELECT
    event.id,
    event.exemplar_id,
    event.label,
    event.created_at,
    drawn.weight
FROM venn_admit.monitored_label_v1 AS event
LEFT JOIN venn_admit.audit_weight_v2 AS drawn ON event.exemplar_id = drawn.exemplar_id
WHERE
    drawn.is_drawn IS NOT FALSE
    OR drawn.weight > 0;
